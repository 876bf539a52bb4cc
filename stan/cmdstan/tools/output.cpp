#include "output.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <utility>

namespace onebasin {
namespace {

enum class Style { fixed, scientific };

// A NaN without its sign, which is an accident of how it came about.
std::string not_finite(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string decimals(double value, int count) {
  if (!std::isfinite(value)) return not_finite(value);
  std::ostringstream out;
  out << std::fixed << std::setprecision(count) << value;
  return out.str();
}

std::string format(double value, Style style, int sig_figs) {
  if (!std::isfinite(value)) return not_finite(value);
  if (style == Style::fixed) {
    const int magnitude
        = value == 0 ? -1 : static_cast<int>(std::floor(std::log10(std::fabs(value))));
    return decimals(value, std::max(0, sig_figs - 1 - magnitude));
  }
  std::ostringstream out;
  out << std::scientific << std::setprecision(sig_figs - 1) << value;
  return out.str();
}

// Numbers that would be mostly zeros, or very long, are told in powers of ten. CmdStan's printed
// tables draw the line here: -0.36 and 0.025 as they are, -0.063 and 0.0065 not.
bool needs_power(double value, int sig_figs) {
  const std::string text = format(value, Style::fixed, sig_figs);
  return std::isfinite(value) && text.size() > static_cast<std::size_t>(sig_figs + 3);
}

using TextRow = std::vector<std::string>;

// One style for a statistic in all rows, so that its numbers can be compared.
std::vector<TextRow> as_text(const std::vector<TableRow>& block, int sig_figs) {
  std::vector<TextRow> lines;
  for (const TableRow& row : block) lines.push_back({row.name});
  const std::size_t count = block.empty() ? 0 : block.front().values.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool powers = std::any_of(block.begin(), block.end(), [=](const TableRow& row) {
      return needs_power(row.values[i], sig_figs);
    });
    const Style style = powers ? Style::scientific : Style::fixed;
    for (std::size_t line = 0; line < block.size(); ++line)
      lines[line].push_back(format(block[line].values[i], style, sig_figs));
  }
  return lines;
}

// `a`, or `(a, b)` where the chains differ.
std::string of_each_run(const Draws& draws, std::size_t RunFacts::*number) {
  const std::size_t first = draws.runs().front().*number;
  std::string all;
  bool differ = false;
  for (const RunFacts& run : draws.runs()) {
    all += (all.empty() ? "" : ", ") + std::to_string(run.*number);
    differ = differ || run.*number != first;
  }
  return differ ? "(" + all + ")" : std::to_string(first);
}

std::string timing(const Draws& draws, const std::string& phase, double RunFacts::*seconds) {
  double total = 0;
  std::string each;
  for (const RunFacts& run : draws.runs()) {
    total += run.*seconds;
    each += (each.empty() ? "" : ", ") + format(run.*seconds, Style::fixed, 2);
  }
  return phase + " took (" + each + ") seconds, " + format(total, Style::fixed, 2)
         + " seconds total";
}

std::vector<std::string> heading(const Draws& draws) {
  return {"Inference for Stan model: " + draws.runs().front().model,
          std::to_string(draws.chains()) + " chains: each with iter="
              + of_each_run(draws, &RunFacts::iterations)
              + "; warmup=" + of_each_run(draws, &RunFacts::warmup)
              + "; thin=" + of_each_run(draws, &RunFacts::thin) + "; "
              + std::to_string(draws.draws_per_chain()) + " iterations saved.",
          "",
          timing(draws, "Warmup", &RunFacts::warmup_seconds),
          timing(draws, "Sampling", &RunFacts::sampling_seconds),
          ""};
}

std::vector<std::string> notes(const Draws& draws) {
  const RunFacts& run = draws.runs().front();
  const std::string sampler = run.algorithm.empty() ? run.method : run.algorithm;
  return {"Samples were drawn using " + sampler + (run.engine.empty() ? "" : " with " + run.engine)
              + ".",
          "For each parameter, ESS_bulk and ESS_tail measure the effective sample size for the "
          "entire sample (bulk)",
          "and for the .05 and .95 tails (tail), and R_hat measures the potential scale reduction "
          "on split chains.",
          "At convergence R_hat will be very close to 1.00."};
}

void write_lines(std::ostream& out, const std::vector<std::string>& lines,
                 const std::string& prefix = "") {
  for (const std::string& line : lines) out << prefix << line << '\n';
}

// Names to the left, numbers to the right.
class Layout {
 public:
  void fit(const TextRow& row) {
    widths_.resize(std::max(widths_.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
  }

  void write(std::ostream& out, const std::vector<TextRow>& rows) const {
    for (const TextRow& row : rows) {
      out << std::left << std::setw(static_cast<int>(widths_[0] + 2)) << row[0] << std::right;
      for (std::size_t i = 1; i < row.size(); ++i)
        out << std::setw(static_cast<int>(widths_[i] + 2)) << row[i];
      out << '\n';
    }
  }

 private:
  std::vector<std::size_t> widths_;
};

void write_block(std::ostream& out, const std::vector<TableRow>& block) {
  for (const TableRow& row : block) {
    out << '"' << row.name << '"';
    for (const double value : row.values) {
      out << ',';
      if (std::isfinite(value))
        out << value;
      else
        out << not_finite(value);
    }
    out << '\n';
  }
}

}  // namespace

void write_text(std::ostream& out, const Table& table, const Draws& draws, int sig_figs) {
  TextRow header{""};
  header.insert(header.end(), table.statistics.begin(), table.statistics.end());
  // The log density is printed with the sampler's rows, and styled like the model's.
  std::vector<TableRow> styled = table.log_density;
  styled.insert(styled.end(), table.model.begin(), table.model.end());
  std::vector<TextRow> model = as_text(styled, sig_figs);
  const auto first = model.begin() + static_cast<std::ptrdiff_t>(table.log_density.size());
  std::vector<TextRow> sampler(model.begin(), first);
  model.erase(model.begin(), first);
  for (TextRow& row : as_text(table.sampler, sig_figs)) sampler.push_back(std::move(row));

  Layout layout;
  layout.fit(header);
  for (const auto* block : {&sampler, &model})
    for (const TextRow& row : *block) layout.fit(row);

  write_lines(out, heading(draws));
  layout.write(out, {header});
  out << '\n';
  layout.write(out, sampler);
  if (!sampler.empty()) out << '\n';
  layout.write(out, model);
  if (!model.empty()) out << '\n';
  write_lines(out, notes(draws));
}

void write_csv(std::ostream& out, const Table& table, const Draws& draws, int precision) {
  out << std::setprecision(precision) << "name";
  for (const std::string& name : table.statistics) out << ',' << name;
  out << '\n';
  write_block(out, table.log_density);
  write_block(out, table.sampler);
  write_block(out, table.model);
  write_lines(out, heading(draws), "# ");
  write_lines(out, notes(draws), "# ");
}

void write_autocorrelations(std::ostream& out, const Draws& draws, const Rows& rows, int chain,
                            int sig_figs) {
  out << "\nDisplaying the autocorrelations for chain " << chain << ":\n\n";
  TextRow header{"Lag"};
  std::vector<TextRow> lines;
  for (int lag = 0; lag < draws.draws_per_chain(); ++lag) lines.push_back({std::to_string(lag)});
  for (const auto* block : {&rows.log_density, &rows.sampler, &rows.model})
    for (const int column : *block) {
      header.push_back(draws.names()[column]);
      const std::vector<double> values = draws.autocorrelation(chain - 1, column);
      for (std::size_t lag = 0; lag < values.size(); ++lag) {
        lines[lag].push_back(decimals(values[lag], sig_figs));
      }
    }
  Layout layout;
  layout.fit(header);
  for (const TextRow& line : lines) layout.fit(line);
  layout.write(out, {header});
  layout.write(out, lines);
}

}  // namespace onebasin
