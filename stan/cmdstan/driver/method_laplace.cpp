// method=laplace: draws from a Gaussian around a mode.
#include "output_files.hpp"
#include "run.hpp"

#include <stan/services/optimize/laplace_sample.hpp>

#include <iostream>
#include <stdexcept>

namespace onebasin {
namespace {

Eigen::VectorXd read_mode(const std::string& path, const stan::model::model_base& model) {
  Eigen::VectorXd unconstrained;
  if (ends_with(path, ".json")) {
    model.transform_inits(*read_context(path), unconstrained, &std::cerr);
    return unconstrained;
  }
  if (!ends_with(path, ".csv"))
    throw std::invalid_argument("Mode file must be a CSV or a JSON file.\n");
  if (!has_comment(path, "method = optimize"))
    throw std::invalid_argument("CSV file is not output from Stan optimization\n");
  std::vector<std::string> names;
  model.constrained_param_names(names, false, false);
  const auto rows = read_draws(path, names);
  if (rows.empty()) throw std::invalid_argument("Mode file \"" + path + "\" has no values.\n");
  // With save_iterations=1 earlier rows are on the way to the mode.
  const Eigen::VectorXd constrained
      = Eigen::Map<const Eigen::VectorXd>(rows.back().data(), rows.back().size());
  model.unconstrain_array(constrained, unconstrained, &std::cerr);
  return unconstrained;
}

}  // namespace

int run_laplace(Run& run) {
  const Node& m = run.method;
  const std::string& path = m["mode"].text();
  if (path.empty())
    throw std::invalid_argument(
        "Missing mode argument, a CSV or JSON file with the mode is required.\n");
  refuse_overwriting({path}, run.result_names(1));
  const Eigen::VectorXd mode = read_mode(path, run.model);
  auto results = run.results(1);
  auto hessian
      = run.json_files(run.diagnostic_path(), "", 1, !run.diagnostic_path().empty());
  const auto call = [&](auto service) {
    return service(run.model, mode, m["draws"].integer(), m["calculate_lp"].flag(), run.seed,
                   run.refresh, run.interrupt, run.logger, results[0], hessian[0]);
  };
  using stan::model::model_base;
  namespace services = stan::services;
  // Spelled out, since the service has a second overload.
  using Service = int (*)(const model_base&, const Eigen::VectorXd&, int, bool, unsigned, int,
                          stan::callbacks::interrupt&, stan::callbacks::logger&,
                          stan::callbacks::writer&, stan::callbacks::structured_writer&);
  const Service with = services::laplace_sample<true, model_base>;
  const Service without = services::laplace_sample<false, model_base>;
  return call(m["jacobian"].flag() ? with : without);
}

}  // namespace onebasin
