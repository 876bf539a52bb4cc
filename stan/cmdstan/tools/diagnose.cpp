// bin/diagnose: looks through the draws of one or more chains for signs of trouble.
#include "draws.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>

namespace onebasin {
namespace {

constexpr double least_ebfmi = 0.3;
constexpr double least_ess_per_draw = 0.001;
constexpr double largest_rhat = 1.01499;  // what is not more than 1.01 when rounded

// Each check prints its paragraph and says whether all is well.

bool check_treedepth(const Draws& draws, int column) {
  std::cout << "Checking sampler transitions treedepth.\n";
  const std::vector<double> depths = draws.values(column);
  std::map<int, long> hits;  // by limit, since each chain has its own
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const int limit = draws.runs()[i / draws.draws_per_chain()].max_depth;
    if (depths[i] >= limit) ++hits[limit];
  }
  for (const auto& [limit, count] : hits)
    std::cout << count << " of " << draws.size() << " (" << 100.0 * count / draws.size()
              << "%) transitions hit the maximum treedepth limit of " << limit << ", or 2^" << limit
              << " leapfrog steps.\n"
                 "Trajectories that are prematurely terminated due to this limit will result in "
                 "slow exploration.\n"
                 "For optimal performance, increase this limit.\n";
  if (hits.empty()) std::cout << "Treedepth satisfactory for all transitions.\n";
  std::cout << '\n';
  return hits.empty();
}

bool check_divergences(const Draws& draws, int column) {
  std::cout << "Checking sampler transitions for divergences.\n";
  long count = 0;
  for (const double divergent : draws.values(column)) count += divergent != 0;
  if (count > 0)
    std::cout << count << " of " << draws.size() << " (" << 100.0 * count / draws.size()
              << "%) transitions ended with a divergence.\n"
                 "These divergent transitions indicate that HMC is not fully able to explore the "
                 "posterior distribution.\n"
                 "Try increasing adapt delta closer to 1.\n"
                 "If this doesn't remove all divergences, try to reparameterize the model.\n";
  else
    std::cout << "No divergent transitions found.\n";
  std::cout << '\n';
  return count == 0;
}

// The chains are strung one after the other, as CmdStan does: a jump from one chain's last energy
// to the next one's first counts as a step.
double ebfmi(const Draws& draws, int column) {
  const std::vector<double> energies = draws.values(column);
  double sum = 0;
  for (std::size_t i = 1; i < energies.size(); ++i)
    sum += (energies[i] - energies[i - 1]) * (energies[i] - energies[i - 1]);
  return sum / static_cast<double>(energies.size() - 1) / draws.variance(column);
}

bool check_energy(const Draws& draws, int column) {
  std::cout << "Checking E-BFMI - sampler transitions HMC potential energy.\n";
  const double value = ebfmi(draws, column);
  if (std::isnan(value))
    std::cout << "The E-BFMI cannot be computed: the energies do not vary, or are not finite.\n";
  else if (value < least_ebfmi)
    std::cout << "The E-BFMI, " << value << ", is below the nominal threshold of " << least_ebfmi
              << " which suggests that HMC may have trouble exploring the target distribution.\n"
                 "If possible, try to reparameterize the model.\n";
  else
    std::cout << "E-BFMI satisfactory.\n";
  std::cout << '\n';
  return value >= least_ebfmi;
}

// In the order of the columns.
bool check_sampler(const Draws& draws) {
  bool fine = true;
  for (int column = 0; column < static_cast<int>(draws.names().size()); ++column) {
    const std::string& name = draws.names()[column];
    if (name == "treedepth__") fine = check_treedepth(draws, column) && fine;
    if (name == "divergent__") fine = check_divergences(draws, column) && fine;
    if (name == "energy__") fine = check_energy(draws, column) && fine;
  }
  return fine;
}

std::vector<int> model_columns(const Draws& draws) {
  std::vector<int> columns;
  for (int column = 0; column < static_cast<int>(draws.names().size()); ++column)
    if (draws.names()[column].find("__") == std::string::npos) columns.push_back(column);
  return columns;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// A column that does not vary, or is not finite, has neither effective sample size nor R-hat; like
// CmdStan, these pass over it. Unlike CmdStan, they do not pass over a chain that is stuck.

bool check_ess(const Draws& draws) {
  std::vector<std::string> low;
  for (const int column : model_columns(draws)) {
    const Draws::Ess ess = draws.ess(column);
    if (std::min(ess.bulk, ess.tail) / draws.size() < least_ess_per_draw)
      low.push_back(draws.names()[column]);
  }
  if (low.empty())
    std::cout << "Rank-normalized split effective sample size satisfactory for all parameters.\n";
  else
    std::cout << "The following parameters had fewer than 0.001 effective draws per transition:\n"
              << "  " << joined(low)
              << "\nSuch low values indicate that the effective sample size estimators may be "
                 "biased high and actual performance may be substantially lower than quoted.\n";
  std::cout << '\n';
  return low.empty();
}

bool check_rhat(const Draws& draws) {
  std::vector<std::string> high;
  for (const int column : model_columns(draws))
    if (draws.rhat_of_any_chains(column) > largest_rhat) high.push_back(draws.names()[column]);
  if (high.empty())
    std::cout << "Rank-normalized split R-hat values satisfactory for all parameters.\n";
  else
    std::cout << "The following parameters had rank-normalized split R-hat greater than 1.01:\n"
              << "  " << joined(high)
              << "\nSuch high values indicate incomplete mixing and biased estimation.\n"
                 "You should consider regularizing your model with additional prior information or "
                 "a more effective parameterization.\n";
  std::cout << '\n';
  return high.empty();
}

void print_usage() {
  std::cout << "Usage: diagnose FILE...\n"
               "\n"
               "Reads the draws of one or more chains, one Stan CSV file each, and looks for signs "
               "that the\nsampler did not explore the posterior: transitions cut short, "
               "divergences, low E-BFMI, low\neffective sample size, high R-hat.\n";
}

std::vector<std::string> that_exist(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& path : arguments)
    if (std::ifstream(path))
      files.push_back(path);
    else
      std::cout << "File " << path << " not found\n";
  return files;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() == "-h" || arguments.front() == "--help") {
    print_usage();
    return EXIT_SUCCESS;
  }
  const std::vector<std::string> files = that_exist(arguments);
  if (files.empty()) {
    std::cout << "No valid input files, exiting.\n";
    return EXIT_FAILURE;
  }
  const Draws draws(files);
  std::cout << std::fixed << std::setprecision(2);
  const bool sampler_fine = check_sampler(draws);
  const bool ess_fine = check_ess(draws);
  const bool rhat_fine = check_rhat(draws);
  std::cout << (sampler_fine && ess_fine && rhat_fine
                    ? "Processing complete, no problems detected.\n"
                    : "Processing complete.\n");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace onebasin

int main(int argc, char* argv[]) {
  try {
    return onebasin::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return EXIT_FAILURE;
  }
}
