#include "output_files.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iomanip>
#include <stdexcept>

namespace onebasin {

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

namespace {

// Path components from the last to the first, without `.` and `..`.
std::vector<std::string> steps_from_end(const std::string& path) {
  std::vector<std::string> steps;
  std::size_t end = path.size();
  while (end > 0) {
    const std::size_t slash = path.find_last_of('/', end - 1);
    const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
    const std::string step = path.substr(start, end - start);
    if (!step.empty() && step != "." && step != "..") steps.push_back(step);
    if (slash == std::string::npos) break;
    end = slash;
  }
  return steps;
}

}  // namespace

bool same_file_name(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  return steps_from_end(a) == steps_from_end(b);
}

}  // namespace onebasin
