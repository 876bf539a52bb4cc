#include "options.hpp"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace onebasin {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& value,
                         const std::string& allowed) {
  throw std::invalid_argument(option + ": \"" + value + "\" is not allowed; it has to be " + allowed
                              + ".");
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The whole text as a number, or nothing.
template <typename Number>
std::optional<Number> number(const std::string& text) {
  std::istringstream in(text);
  Number value;
  if (!(in >> value) || !(in >> std::ws).eof()) return std::nullopt;
  return value;
}

int integer(const std::string& option, const std::string& text, int low, int high,
            const std::string& allowed) {
  const std::optional<int> value = number<int>(text);
  if (!value || *value < low || *value > high) refuse(option, text, allowed);
  return *value;
}

std::vector<Percentile> percentiles(const std::string& option, const std::string& list) {
  const std::string allowed
      = "a list of increasing numbers from 0.1 to 99.9, separated by commas, or empty";
  std::vector<Percentile> result;
  if (trimmed(list).empty()) return result;
  std::istringstream in(list + ',');
  for (std::string word; std::getline(in, word, ',');) {
    const std::string text = trimmed(word);
    const std::optional<double> value = number<double>(text);
    if (!value || !(*value >= 0.1 && *value <= 99.9)
        || (!result.empty() && *value <= result.back().value))
      refuse(option, list, allowed);
    result.push_back({text, *value});
  }
  return result;
}

std::string new_file(const std::string& option, const std::string& path) {
  if (path.empty()) refuse(option, path, "a path");
  if (std::filesystem::exists(path))
    throw std::invalid_argument(option + ": Path already exists: " + path
                                + ". Remove it, or name another file.");
  return path;
}

void set(Options& options, const std::string& option, const std::string& value) {
  if (option == "-a" || option == "--autocorr")
    options.autocorr = integer(option, value, 1, 1 << 30, "the number of a chain, from 1");
  else if (option == "-c" || option == "--csv_filename")
    options.csv_filename = new_file(option, value);
  else if (option == "-p" || option == "--percentiles")
    options.percentiles = percentiles(option, value);
  else if (option == "-s" || option == "--sig_figs")
    options.sig_figs = integer(option, value, 1, 18, "an integer from 1 to 18");
  else
    options.include.push_back(value);
}

bool takes_value(const std::string& option) {
  for (const char* known : {"-a", "--autocorr", "-c", "--csv_filename", "-p", "--percentiles", "-s",
                            "--sig_figs", "-i", "--include_param"})
    if (option == known) return true;
  return false;
}

}  // namespace

Options read_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      options.files.push_back(argument);
      continue;
    }
    const std::size_t equal = argument.find('=');
    const std::string option = argument.substr(0, equal);
    if (option == "-h" || option == "--help") {
      options.help = true;
    } else if (!takes_value(option)) {
      throw std::invalid_argument("The option " + option + " is not known; --help lists them.");
    } else if (equal != std::string::npos) {
      set(options, option, argument.substr(equal + 1));
    } else if (i + 1 < arguments.size()) {
      set(options, option, arguments[++i]);
    } else {
      throw std::invalid_argument("The option " + option + " needs a value.");
    }
  }
  return options;
}

std::string usage() {
  return "Usage: stansummary [OPTIONS] FILE...\n"
         "\n"
         "Summarises the draws of one or more chains, one Stan CSV file each: mean, Monte Carlo\n"
         "standard error, spread, percentiles, effective sample sizes and R-hat of every column.\n"
         "\n"
         "  -a, --autocorr N         show the autocorrelations of the N-th chain too\n"
         "  -c, --csv_filename FILE  write the table to FILE, which must not exist yet\n"
         "  -h, --help               show this text\n"
         "  -i, --include_param NAME only this parameter (theta, theta[1,2] or theta.1.2); may be\n"
         "                           given again\n"
         "  -p, --percentiles LIST   percentiles to report, as in 2.5,50,97.5 (default 5,50,95);\n"
         "                           an empty list for none\n"
         "  -s, --sig_figs N         significant digits, 1 to 18 (default 2; 6 in FILE)\n";
}

}  // namespace onebasin
