#include <servecap/io.hpp>
#include <servecap/servecap.hpp>

std::size_t second_sees();
std::size_t second_sees() { return sizeof(servecap::Model) + sizeof(servecap::StartPlan); }
