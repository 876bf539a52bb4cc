// Reading variables by name (data, initial values, metrics) and draws from CSV.
#pragma once

#include "mathematics.hpp"

#include <stan/io/var_context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace onebasin {

using Context = std::shared_ptr<const stan::io::var_context>;

// A JSON file (or, by any other suffix, R's dump format); an empty path holds no variables.
std::shared_ptr<stan::io::var_context> read_context(const std::string& path);

// One context a chain. With several chains, those of `a.json,b.json`; or of `base_<id>.json` for every
// chain if the first of them is there; else the plain file for all.
std::vector<Context> read_contexts(const std::string& path, int first_id, int chains);

// The rows of a CSV file whose columns, after leading ones that end in `__`, are `names`; later
// columns are dropped.
std::vector<std::vector<double>> read_draws(const std::string& path,
                                            const std::vector<std::string>& names);

// Whether a comment line of a CSV file holds `text`.
bool has_comment(const std::string& path, const std::string& text);

bool ends_with(const std::string& text, const std::string& suffix);

}  // namespace onebasin
