// What the executable was built from, as `<program> info` prints it.
#pragma once

#include <string>

namespace onebasin {

std::string build_info();

}  // namespace onebasin
