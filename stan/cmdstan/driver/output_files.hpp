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
// from `first_id`. An empty `suffix` keeps the path's own (`.csv` where it has none). For several,
// the names may also be spelled out: `a.csv,b.csv`.
std::vector<std::string> numbered_names(const std::string& path, const std::string& tag,
                                        const std::string& suffix, int first_id, int how_many);

// The names in `a,b,c`. Throws if there are several, but not as many as there are chains.
std::vector<std::string> spelled_out(const std::string& paths, int chains);

// When what is written reaches the file: CSV writers flush each row themselves, JSON writers never.
enum class Flushing { by_writer, always };

// Opens a file for writing with `digits` significant digits (-1: the stream's own six). Throws if it
// cannot be opened, and wherever something cannot be written later, on a full disk for one.
std::unique_ptr<std::ofstream> open_output(const std::string& path, int digits,
                                           Flushing flushing = Flushing::by_writer);

// Throws if an output would replace an input.
void refuse_overwriting(const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs);

}  // namespace onebasin
