// The command line of stansummary.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace onebasin {

struct Percentile {
  std::string text;  // as it was given, for the column's name
  double value;
};

struct Options {
  std::vector<std::string> files;
  std::vector<Percentile> percentiles{{"5", 5}, {"50", 50}, {"95", 95}};
  std::vector<std::string> include;
  std::optional<int> sig_figs;
  std::optional<int> autocorr;  // a chain, from 1
  std::string csv_filename;
  bool help = false;
};

// Throws std::invalid_argument with a sentence for the user.
Options read_options(const std::vector<std::string>& arguments);

std::string usage();

}  // namespace onebasin
