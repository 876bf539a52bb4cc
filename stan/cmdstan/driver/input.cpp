#include "input.hpp"

#include "output_files.hpp"

#include <stan/io/dump.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace onebasin {

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size()
         && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

namespace {

bool exists(const std::string& path) { return std::ifstream(path).good(); }

std::ifstream open_input(const std::string& path) {
  std::ifstream stream(path);
  if (!stream.good())
    throw std::invalid_argument("Can't open specified file, \"" + path + "\"\n");
  return stream;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) {
    const std::size_t first = field.find_first_not_of(" \t\r");
    const std::size_t last = field.find_last_not_of(" \t\r");
    fields.push_back(first == std::string::npos ? "" : field.substr(first, last - first + 1));
  }
  return fields;
}

}  // namespace

std::shared_ptr<stan::io::var_context> read_context(const std::string& path) {
  if (path.empty()) return std::make_shared<stan::io::empty_var_context>();
  std::ifstream stream = open_input(path);
  if (ends_with(path, ".json")) return std::make_shared<stan::json::json_data>(stream);
  std::cerr << "Warning: file '" << path
            << "' is read in the deprecated R dump format; JSON is preferred.\n";
  return std::make_shared<stan::io::dump>(stream);
}

std::vector<Context> read_contexts(const std::string& path, int first_id, int chains) {
  if (path.empty() || chains == 1) return std::vector<Context>(chains, read_context(path));
  const bool is_list = spelled_out(path, chains).size() > 1;
  if (!is_list && !ends_with(path, ".json") && !ends_with(path, ".R"))
    throw std::invalid_argument("Input file \"" + path + "\" must end in .json or .R.\n");
  const std::vector<std::string> names = numbered_names(path, "", "", first_id, chains);
  if (is_list || exists(names.front())) {
    std::vector<Context> contexts;
    for (const std::string& name : names) contexts.push_back(read_context(name));
    return contexts;
  }
  if (exists(path)) return std::vector<Context>(chains, read_context(path));
  throw std::invalid_argument("Searching for  \"" + names.front() + "\" and base file \"" + path
                              + "\"\nCan't open either of specified files, \"" + names.front()
                              + "\", \"" + path + "\"\n");
}

bool has_comment(const std::string& path, const std::string& text) {
  std::ifstream stream = open_input(path);
  for (std::string line; std::getline(stream, line);)
    if (line[0] == '#' && line.find(text) != std::string::npos) return true;
  return false;
}

std::vector<std::vector<double>> read_draws(const std::string& path,
                                            const std::vector<std::string>& names) {
  std::ifstream stream = open_input(path);
  const std::invalid_argument mismatch("Mismatch between model and fitted_parameters csv file \""
                                       + path + "\"\n");
  std::vector<std::vector<double>> rows;
  std::size_t first = 0;
  bool has_header = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = split(line);
    if (!has_header) {
      while (first < fields.size() && ends_with(fields[first], "__")) ++first;
      if (fields.size() < first + names.size()
          || !std::equal(names.begin(), names.end(), fields.begin() + first))
        throw mismatch;
      has_header = true;
      continue;
    }
    if (fields.size() < first + names.size()) throw mismatch;
    std::vector<double> row;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::size_t used = 0;
      row.push_back(std::stod(fields[first + i], &used));
      if (used != fields[first + i].size()) throw mismatch;
    }
    rows.push_back(std::move(row));
  }
  if (!has_header) throw mismatch;
  return rows;
}

}  // namespace onebasin
