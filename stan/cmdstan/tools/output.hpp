// A summary as text for the console, and as CSV.
#pragma once

#include "draws.hpp"
#include "rows.hpp"
#include "table.hpp"

#include <iosfwd>

namespace onebasin {

void write_text(std::ostream& out, const Table& table, const Draws& draws, int sig_figs);
void write_csv(std::ostream& out, const Table& table, const Draws& draws, int precision);

// One chain's autocorrelations: a line a lag, a column for each row of the summary.
void write_autocorrelations(std::ostream& out, const Draws& draws, const Rows& rows, int chain,
                            int sig_figs);

}  // namespace onebasin
