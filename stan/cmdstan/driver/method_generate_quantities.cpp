// method=generate_quantities: runs the generated quantities block on draws of an earlier run.
#include "output_files.hpp"
#include "run.hpp"

#include <stan/services/sample/standalone_gqs.hpp>

#include <cstddef>
#include <stdexcept>

namespace onebasin {
namespace {

Eigen::MatrixXd as_matrix(const std::vector<std::vector<double>>& rows, std::size_t columns) {
  Eigen::MatrixXd matrix(rows.size(), columns);
  for (std::size_t i = 0; i < rows.size(); ++i)
    matrix.row(i) = Eigen::Map<const Eigen::RowVectorXd>(rows[i].data(), columns);
  return matrix;
}

}  // namespace

int run_generate_quantities(Run& run) {
  const std::string& path = run.method["fitted_params"].text();
  const int chains = run.method["num_chains"].integer();
  if (path.empty())
    throw std::invalid_argument(
        "Missing fitted_params argument, cannot run generate_quantities without fitted sample.\n");
  if (!ends_with(path, ".csv"))
    throw std::invalid_argument("Fitted params file must be a CSV file.\n");
  if (run.model.num_params_r() == 0)
    throw std::invalid_argument("Model " + run.model.model_name()
                                + " has no parameters, nothing to estimate.");
  const std::vector<std::string> inputs
      = numbered_names(path, "", "", static_cast<int>(run.id), chains);
  refuse_overwriting(inputs, run.result_names(chains));
  std::vector<std::string> names;
  run.model.constrained_param_names(names, false, false);
  std::vector<Eigen::MatrixXd> draws;
  for (const std::string& name : inputs)
    draws.push_back(as_matrix(read_draws(name, names), names.size()));
  auto results = run.results(chains);
  return stan::services::standalone_generate(run.model, chains, draws, run.seed, run.interrupt,
                                             run.logger, results);
}

}  // namespace onebasin
