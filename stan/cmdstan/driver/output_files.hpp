// Names of output files, and opening them.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace onebasin {

// Throws if a path ends in a separator or in nothing but dots, so that no file can have it.
void check_output_name(const std::string& path);

struct SplitName {
  std::string base;
  std::string suffix;  // with its dot, or empty
};

// Splits at the last dot of the last path component, if that dot starts a suffix.
SplitName split_name(const std::string& path);

// `base + tag + suffix` for one file, `base + tag + "_" + id + suffix` for several, counting up
// from `first_id`. An empty `suffix` keeps the path's own (`.csv` where it has none).
std::vector<std::string> numbered_names(const std::string& path, const std::string& tag,
                                        const std::string& suffix, int first_id, int how_many);

// Opens a file for writing with `digits` significant digits (-1: the stream's own six).
std::unique_ptr<std::ofstream> open_output(const std::string& path, int digits);

// Throws if the output would replace the input.
void refuse_overwriting(const std::string& input, const std::string& output);

}  // namespace onebasin
