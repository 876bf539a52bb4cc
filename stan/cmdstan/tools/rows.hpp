// Which columns of the draws a summary has as rows, and in which order.
#pragma once

#include <string>
#include <vector>

namespace onebasin {

// Columns, in three blocks: `lp__`, the sampler's others (which end in `__` too), the model's. In
// the model's the last index of a container runs fastest, where draws files have the first.
struct Rows {
  std::vector<int> log_density;
  std::vector<int> sampler;
  std::vector<int> model;
};

Rows all_rows(const std::vector<std::string>& names);

// Only the rows that are asked for: `theta[1,2]` or `theta.1.2`, or `theta` for all its elements.
// Throws std::invalid_argument naming those that are not there.
Rows only(const Rows& rows, const std::vector<std::string>& names,
          const std::vector<std::string>& wanted);

}  // namespace onebasin
