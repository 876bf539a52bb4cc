// method=optimize: Newton, BFGS and L-BFGS.
#include "run.hpp"

#include <stan/services/optimize/bfgs.hpp>
#include <stan/services/optimize/lbfgs.hpp>
#include <stan/services/optimize/newton.hpp>

namespace onebasin {
namespace {

template <bool jacobian>
int optimize(Run& run) {
  using stan::model::model_base;
  namespace service = stan::services::optimize;
  const Node& m = run.method;
  const Node& algorithm = m["algorithm"];
  const auto inits = run.inits(1);
  auto results = run.results(1);
  NullWriter init_writer;
  const int iterations = m["iter"].integer();
  const bool save = m["save_iterations"].flag();
  if (algorithm.text() == "newton")
    return service::newton<model_base, jacobian>(
        run.model, *inits[0], run.seed, run.id, run.init_radius(), iterations, save, run.interrupt,
        run.logger, init_writer, results[0]);
  const Node& a = algorithm.selected();
  if (algorithm.text() == "bfgs")
    return service::bfgs<model_base, jacobian>(
        run.model, *inits[0], run.seed, run.id, run.init_radius(), a["init_alpha"].real(),
        a["tol_obj"].real(), a["tol_rel_obj"].real(), a["tol_grad"].real(),
        a["tol_rel_grad"].real(), a["tol_param"].real(), iterations, save, run.refresh,
        run.interrupt, run.logger, init_writer, results[0]);
  return service::lbfgs<model_base, jacobian>(
      run.model, *inits[0], run.seed, run.id, run.init_radius(), a["history_size"].integer(),
      a["init_alpha"].real(), a["tol_obj"].real(), a["tol_rel_obj"].real(), a["tol_grad"].real(),
      a["tol_rel_grad"].real(), a["tol_param"].real(), iterations, save, run.refresh,
      run.interrupt, run.logger, init_writer, results[0]);
}

}  // namespace

int run_optimize(Run& run) {
  return run.method["jacobian"].flag() ? optimize<true>(run) : optimize<false>(run);
}

}  // namespace onebasin
