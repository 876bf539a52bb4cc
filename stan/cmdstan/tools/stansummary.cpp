// bin/stansummary: a table of statistics of the draws of one or more chains.
#include "draws.hpp"
#include "options.hpp"
#include "output.hpp"
#include "rows.hpp"
#include "table.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace onebasin {
namespace {

constexpr int text_digits = 2;
constexpr int csv_digits = 6;

void save(const std::string& path, const Table& table, const Draws& draws, int precision) {
  std::ofstream out(path);
  if (out) write_csv(out, table, draws, precision);
  if (!out.flush())
    throw std::runtime_error("Cannot save to csv_filename: " + path + ": " + std::strerror(errno)
                             + ".");
}

void check_chain(const Options& options, const Draws& draws) {
  if (options.autocorr && *options.autocorr > draws.chains())
    throw std::invalid_argument("--autocorr: there is no chain " + std::to_string(*options.autocorr)
                                + "; " + std::to_string(draws.chains()) + " were given.");
}

int run(const std::vector<std::string>& arguments) {
  const Options options = read_options(arguments);
  if (arguments.empty() || options.help) {
    std::cout << usage();
    return options.help ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (options.files.empty())
    throw std::invalid_argument("No input files; name one Stan CSV file a chain.");

  const Draws draws(options.files);
  check_chain(options, draws);
  Rows rows = all_rows(draws.names());
  if (!options.include.empty()) rows = only(rows, draws.names(), options.include);
  const Table table = summarise(draws, rows, options.percentiles);

  if (!options.csv_filename.empty())
    save(options.csv_filename, table, draws, options.sig_figs.value_or(csv_digits));
  const int digits = options.sig_figs.value_or(text_digits);
  write_text(std::cout, table, draws, digits);
  if (options.autocorr)
    write_autocorrelations(std::cout, draws, rows, *options.autocorr, digits);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace onebasin

int main(int argc, char* argv[]) {
  try {
    return onebasin::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const onebasin::NoDraws& error) {
    std::cerr << "No sampling draws found in Stan CSV file: " << error.file << "." << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  }
  return EXIT_FAILURE;
}
