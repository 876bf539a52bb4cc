#include "output_files.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <stdexcept>

namespace onebasin {

void check_output_name(const std::string& path) {
  const std::string last = path.substr(path.find_last_of("/\\") + 1);
  if (!path.empty() && last.find_first_not_of('.') == std::string::npos)
    throw std::invalid_argument("Ill-formed output filename " + path);
}

SplitName split_name(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  const std::size_t slash = path.find_last_of("/\\");
  const auto is_edge = [](char c) { return c == '.' || c == '/' || c == '\\'; };
  if (dot == std::string::npos || dot == 0 || dot + 1 == path.size()
      || (slash != std::string::npos && dot < slash) || is_edge(path[dot - 1]))
    return {path, ""};
  return {path.substr(0, dot), path.substr(dot)};
}

std::vector<std::string> numbered_names(const std::string& path, const std::string& tag,
                                        const std::string& suffix, int first_id, int how_many) {
  const SplitName parts = split_name(path);
  const std::string own_suffix = parts.suffix.empty() ? ".csv" : parts.suffix;
  const std::string ending = suffix.empty() ? own_suffix : suffix;
  if (how_many == 1) return {parts.base + tag + ending};
  std::vector<std::string> names;
  for (int i = 0; i < how_many; ++i)
    names.push_back(parts.base + tag + "_" + std::to_string(first_id + i) + ending);
  return names;
}

std::unique_ptr<std::ofstream> open_output(const std::string& path, int digits) {
  auto stream = std::make_unique<std::ofstream>(path);
  if (!*stream)
    throw std::runtime_error("Error: cannot write output file \"" + path
                             + "\": " + std::strerror(errno));
  if (digits >= 0) *stream << std::setprecision(digits);
  return stream;
}

void refuse_overwriting(const std::string& input, const std::string& output) {
  using std::filesystem::weakly_canonical;
  if (weakly_canonical(input) == weakly_canonical(output))
    throw std::invalid_argument("Filename conflict, input file \"" + input
                                + "\" and output file are the same.\n");
}

}  // namespace onebasin
