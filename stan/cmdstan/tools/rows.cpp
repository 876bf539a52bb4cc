#include "rows.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

namespace onebasin {
namespace {

// `theta[1,2]` and `theta.1.2` are theta, 1, 2; the slots of a tuple (`pair.2[3]`, `pair:2.3`)
// count like indices.
struct Name {
  std::string variable;
  std::vector<int> places;
};

Name parse(const std::string& text) {
  const std::size_t end = std::min(text.find_first_of("[.:"), text.size());
  Name name{text.substr(0, end), {}};
  for (std::size_t i = end; i < text.size();) {
    const std::size_t digits = text.find_first_not_of("[].:,", i);
    if (digits == std::string::npos) break;
    i = std::min(text.find_first_not_of("0123456789", digits), text.size());
    if (i == digits || i - digits > 9) return {text, {}};  // an index that no column has
    name.places.push_back(std::stoi(text.substr(digits, i - digits)));
  }
  return name;
}

bool holds(const Name& whole, const Name& part) {
  return whole.variable == part.variable && whole.places.size() <= part.places.size()
         && std::equal(whole.places.begin(), whole.places.end(), part.places.begin());
}

bool ends_in_underscores(const std::string& name) {
  return name.size() > 2 && name.compare(name.size() - 2, 2, "__") == 0;
}

void last_index_fastest(std::vector<int>& columns, const std::vector<Name>& names) {
  for (auto first = columns.begin(); first != columns.end();) {
    const auto last = std::find_if(first, columns.end(), [&](int column) {
      return names[column].variable != names[*first].variable;
    });
    std::stable_sort(first, last,
                     [&](int a, int b) { return names[a].places < names[b].places; });
    first = last;
  }
}

}  // namespace

Rows all_rows(const std::vector<std::string>& names) {
  Rows rows;
  std::vector<Name> parsed;
  for (int column = 0; column < static_cast<int>(names.size()); ++column) {
    parsed.push_back(parse(names[column]));
    if (names[column] == "lp__")
      rows.log_density.push_back(column);
    else if (ends_in_underscores(names[column]))
      rows.sampler.push_back(column);
    else
      rows.model.push_back(column);
  }
  last_index_fastest(rows.model, parsed);
  return rows;
}

Rows only(const Rows& rows, const std::vector<std::string>& names,
          const std::vector<std::string>& wanted) {
  std::vector<Name> wholes;
  for (const std::string& text : wanted) wholes.push_back(parse(text));
  std::vector<bool> found(wanted.size(), false);
  const auto is_wanted = [&](int column) {
    const Name part = parse(names[column]);
    bool any = false;
    for (std::size_t i = 0; i < wholes.size(); ++i)
      if (holds(wholes[i], part)) any = found[i] = true;
    return any;
  };
  const auto filter = [&](const std::vector<int>& columns) {
    std::vector<int> kept;
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(kept), is_wanted);
    return kept;
  };
  const Rows kept{filter(rows.log_density), filter(rows.sampler), filter(rows.model)};

  std::string unknown;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!found[i]) unknown += (unknown.empty() ? "" : ", ") + wanted[i];
  if (!unknown.empty())
    throw std::invalid_argument("--include_param: Unrecognized parameter(s): " + unknown
                                + ". The names are those of the input's header.");
  return kept;
}

}  // namespace onebasin
