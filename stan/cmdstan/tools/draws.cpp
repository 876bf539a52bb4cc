#include "draws.hpp"

#include "../driver/mathematics.hpp"

#include <stan/io/stan_csv_reader.hpp>
#include <stan/mcmc/chainset.hpp>

#include <algorithm>
#include <fstream>
#include <limits>

namespace onebasin {

using stan::io::stan_csv;
using stan::io::stan_csv_metadata;
using Reader = stan::io::stan_csv_reader;

namespace {

// Saved warm-up draws come before the adaptation's comments. A model without parameters is never
// warmed up, whatever was asked for: its file lacks the columns of HMC.
bool has_warmup_draws(const stan_csv& csv) {
  const auto& names = csv.header;
  return csv.metadata.save_warmup && csv.metadata.num_warmup > 0
         && std::find(names.begin(), names.end(), "stepsize__") != names.end();
}

// Stops in front of the first draw. Stan's own way there never ends in a file that was cut short
// during warm-up.
void skip_to_draws(std::istream& in, const stan_csv& csv) {
  std::string line;
  if (has_warmup_draws(csv))
    while (in.peek() != '#' && std::getline(in, line)) {
    }
  while (in.peek() == '#') std::getline(in, line);
  if (csv.metadata.method == "variational") std::getline(in, line);  // the mean
}

stan_csv parse(std::istream& in, const std::string& path) {
  stan_csv csv;
  Reader::read_metadata(in, csv.metadata);
  if (!Reader::read_header(in, csv.header)) throw CsvError(path, "no column names found");
  skip_to_draws(in, csv);
  if (!Reader::read_samples(in, csv.samples, csv.timing) || csv.samples.rows() == 0)
    throw NoDraws(path);
  if (csv.samples.cols() != static_cast<Eigen::Index>(csv.header.size()))
    throw CsvError(path, std::to_string(csv.header.size()) + " column names, but "
                             + std::to_string(csv.samples.cols()) + " columns of draws");
  return csv;
}

stan_csv read(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("Cannot open input csv file: " + path + ".");
  try {
    return parse(in, path);
  } catch (const std::logic_error& error) {  // Stan's reader, of what it does not understand
    throw CsvError(path, error.what());
  }
}

std::vector<stan_csv> read_all(const std::vector<std::string>& files) {
  std::vector<stan_csv> all;
  for (const std::string& file : files) all.push_back(read(file));
  return all;
}

RunFacts facts_of(const stan_csv& csv) {
  const stan_csv_metadata& said = csv.metadata;
  const std::size_t iterations
      = said.num_samples > 0 ? said.num_samples : static_cast<std::size_t>(csv.samples.rows());
  return {said.model,      said.method,     said.algorithm, said.engine,
          iterations,      said.num_warmup, said.thin,      said.max_depth,
          csv.timing.warmup, csv.timing.sampling};
}

// Stan's functions fall over where a chain of one draw is split in two.
constexpr int fewest_draws = 4;
constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

std::vector<double> to_vector(const Eigen::VectorXd& values) {
  return {values.data(), values.data() + values.size()};
}

}  // namespace

struct Draws::Chains {
  explicit Chains(const std::vector<stan_csv>& files) : set(files) {}
  const stan::mcmc::chainset set;
};

Draws::Draws(const std::vector<std::string>& files) {
  const std::vector<stan_csv> all = read_all(files);
  chains_ = std::make_unique<Chains>(all);
  for (const stan_csv& csv : all) runs_.push_back(facts_of(csv));
}

Draws::~Draws() = default;

const std::vector<std::string>& Draws::names() const { return chains_->set.param_names(); }

int Draws::draws_per_chain() const { return chains_->set.num_samples(); }

double Draws::sampling_seconds() const {
  double sum = 0;
  for (const RunFacts& run : runs_) sum += run.sampling_seconds;
  return sum;
}

std::vector<double> Draws::values(int column) const {
  return to_vector(chains_->set.samples(column).reshaped());
}

double Draws::mean(int column) const { return chains_->set.mean(column); }

double Draws::mcse(int column) const { return chains_->set.mcse_mean(column); }

double Draws::sd(int column) const { return chains_->set.sd(column); }

double Draws::variance(int column) const { return chains_->set.variance(column); }

double Draws::mad(int column) const { return chains_->set.med_abs_deviation(column); }

double Draws::quantile(int column, double probability) const {
  return chains_->set.quantile(column, probability);
}

Draws::Ess Draws::ess(int column) const {
  if (draws_per_chain() < fewest_draws) return {not_known, not_known};
  const auto [bulk, tail] = chains_->set.split_rank_normalized_ess(column);
  return {bulk, tail};
}

double Draws::rhat(int column) const {
  if (draws_per_chain() < fewest_draws) return not_known;
  const auto [bulk, tail] = chains_->set.split_rank_normalized_rhat(column);
  return std::max(bulk, tail);
}

double Draws::rhat_of_any_chains(int column) const {
  using namespace stan::analyze;
  const Eigen::MatrixXd halves = split_chains(chains_->set.samples(column));
  if (draws_per_chain() < fewest_draws || !halves.allFinite()) return not_known;
  const double median = stan::math::quantile(halves.reshaped(), 0.5);
  const double bulk = stan::analyze::rhat(rank_transform(halves));
  const double tail = stan::analyze::rhat(rank_transform((halves.array() - median).abs()));
  return std::max(bulk, tail);
}

std::vector<double> Draws::autocorrelation(int chain, int column) const {
  const Eigen::VectorXd draws = chains_->set.samples(column).col(chain);
  Eigen::VectorXd result(draws.size());
  stan::math::autocorrelation<double>(draws, result);
  return to_vector(result);
}

}  // namespace onebasin
