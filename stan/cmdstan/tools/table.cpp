#include "table.hpp"

#include <limits>

namespace onebasin {
namespace {

std::vector<std::string> headings(const std::vector<Percentile>& percentiles) {
  std::vector<std::string> names{"Mean", "MCSE", "StdDev", "MAD"};
  for (const Percentile& percentile : percentiles) names.push_back(percentile.text + "%");
  for (const char* name : {"ESS_bulk", "ESS_tail", "ESS_bulk/s", "R_hat"}) names.push_back(name);
  return names;
}

// In the order of the headings.
std::vector<double> statistics(const Draws& draws, int column,
                               const std::vector<Percentile>& percentiles) {
  std::vector<double> values{draws.mean(column), draws.mcse(column), draws.sd(column),
                             draws.mad(column)};
  for (const Percentile& percentile : percentiles)
    values.push_back(draws.quantile(column, percentile.value / 100));
  const Draws::Ess ess = draws.ess(column);
  const double seconds = draws.sampling_seconds();
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  values.insert(values.end(), {ess.bulk, ess.tail, seconds > 0 ? ess.bulk / seconds : unknown,
                               draws.rhat(column)});
  return values;
}

}  // namespace

Table summarise(const Draws& draws, const Rows& rows, const std::vector<Percentile>& percentiles) {
  const auto table_rows = [&](const std::vector<int>& columns) {
    std::vector<TableRow> result;
    for (const int column : columns)
      result.push_back({draws.names()[column], statistics(draws, column, percentiles)});
    return result;
  };
  return {headings(percentiles), table_rows(rows.log_density), table_rows(rows.sampler),
          table_rows(rows.model)};
}

}  // namespace onebasin
