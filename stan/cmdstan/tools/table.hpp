// A summary as numbers: a row for each column of the draws, a column for each statistic.
#pragma once

#include "draws.hpp"
#include "options.hpp"
#include "rows.hpp"

#include <string>
#include <vector>

namespace onebasin {

struct TableRow {
  std::string name;
  std::vector<double> values;
};

struct Table {
  std::vector<std::string> statistics;
  std::vector<TableRow> log_density;
  std::vector<TableRow> sampler;
  std::vector<TableRow> model;
};

Table summarise(const Draws& draws, const Rows& rows, const std::vector<Percentile>& percentiles);

}  // namespace onebasin
