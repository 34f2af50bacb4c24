// Every header in two files of one program: a function that is not inline would be defined twice.
#include <servecap/fwd.hpp> // before the headers: its declarations must agree with theirs

#include <servecap/io.hpp>
#include <servecap/servecap.hpp>

std::size_t second_sees();

int main() {
    return second_sees() == sizeof(servecap::Model) + sizeof(servecap::StartPlan) && servecap::embedded_file_count() > 0 ? 0 : 1;
}
