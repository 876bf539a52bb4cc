#include "output_files.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

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

std::vector<std::string> spelled_out(const std::string& paths, int chains) {
  if (paths.find(',') == std::string::npos) return {paths};
  std::vector<std::string> names;
  std::stringstream stream(paths);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  if (names.size() > 1 && names.size() != static_cast<std::size_t>(chains))
    throw std::invalid_argument("Error: \"" + paths + "\" names " + std::to_string(names.size())
                                + " files, but there are " + std::to_string(chains)
                                + " chains. Give one name for all, or one for each chain.\n");
  return names;
}

std::vector<std::string> numbered_names(const std::string& path, const std::string& tag,
                                        const std::string& suffix, int first_id, int how_many) {
  const auto name = [&](const std::string& given, const std::string& number) {
    const SplitName parts = split_name(given);
    const std::string own_suffix = parts.suffix.empty() ? ".csv" : parts.suffix;
    return parts.base + tag + number + (suffix.empty() ? own_suffix : suffix);
  };
  if (how_many == 1) return {name(path, "")};
  std::vector<std::string> names = spelled_out(path, how_many);
  if (names.size() > 1) {
    for (std::string& given : names) given = name(given, "");
    return names;
  }
  names.clear();
  for (int i = 0; i < how_many; ++i)
    names.push_back(name(path, "_" + std::to_string(first_id + i)));
  return names;
}

namespace {

std::string cannot_write(const std::string& path) {
  return "Error: cannot write output file \"" + path + "\": " + std::strerror(errno);
}

// A file buffer that throws where the file cannot take what it is given. A stream with `badbit` among
// its exceptions passes the exception on as it is, so that the message names file and cause wherever
// it is caught, by Stan's services too.
class CheckedBuffer : public std::filebuf {
 public:
  explicit CheckedBuffer(std::string path) : path_(std::move(path)) {}

 protected:
  int_type overflow(int_type character) override {
    const int_type result = std::filebuf::overflow(character);
    if (traits_type::eq_int_type(result, traits_type::eof())) fail();
    return result;
  }
  int sync() override {
    if (std::filebuf::sync() != 0) fail();
    return 0;
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::streamsize written = std::filebuf::xsputn(text, count);
    if (written != count) fail();
    return written;
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(cannot_write(path_)); }

  std::string path_;
};

// Stan's writers ask for an `ofstream`; this one writes through the buffer above, not through its own.
class CheckedFile : public std::ofstream {
 public:
  CheckedFile(const std::string& path, Flushing flushing) : buffer_(path) {
    if (flushing == Flushing::always) buffer_.pubsetbuf(nullptr, 0);
    if (!buffer_.open(path, std::ios_base::out)) throw std::runtime_error(cannot_write(path));
    std::ios::rdbuf(&buffer_);
    exceptions(std::ios_base::badbit | std::ios_base::failbit);
  }

 private:
  CheckedBuffer buffer_;
};

}  // namespace

std::unique_ptr<std::ofstream> open_output(const std::string& path, int digits,
                                           Flushing flushing) {
  auto stream = std::make_unique<CheckedFile>(path, flushing);
  if (digits >= 0) *stream << std::setprecision(digits);
  return stream;
}

void refuse_overwriting(const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
  using std::filesystem::weakly_canonical;
  for (const std::string& input : inputs)
    for (const std::string& output : outputs)
      if (weakly_canonical(input) == weakly_canonical(output))
        throw std::invalid_argument("Filename conflict, input file \"" + input
                                    + "\" and output file are the same.\n");
}

}  // namespace onebasin
