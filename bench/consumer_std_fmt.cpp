#include <string>
#include <vector>

#include <fmt/format.h>
