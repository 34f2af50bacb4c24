// The embedded catalogue, read with servecap's readers.
#include <cstdio>

#include <servecap/io/embedded.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/servecap.hpp>

int main() {
    auto const text = servecap::find_embedded("gpus.csv");
    if (!text) return 1;
    auto const gpus = servecap::read_gpus(*text, "gpus.csv");
    if (!gpus) {
        std::puts(servecap::to_line(gpus.error()).c_str());
        return 1;
    }
    std::printf("servecap %s: %zu GPUs\n", SERVECAP_VERSION, gpus->size());
    return gpus->size() > 40 ? 0 : 1;
}
