// method=variational: ADVI, mean-field and full-rank.
#include "run.hpp"

#include <stan/services/experimental/advi/fullrank.hpp>
#include <stan/services/experimental/advi/meanfield.hpp>

namespace onebasin {

namespace advi = stan::services::experimental::advi;

int run_variational(Run& run) {
  const Node& m = run.method;
  const Node& adapt = m["adapt"];
  const auto inits = run.inits(1);
  NullWriter init_writer;
  auto results = run.results(1);
  auto diagnostics = run.diagnostics(1);
  const auto call = [&](auto service) {
    return service(run.model, *inits[0], run.seed, run.id, run.init_radius(),
                   m["grad_samples"].integer(), m["elbo_samples"].integer(), m["iter"].integer(),
                   m["tol_rel_obj"].real(), m["eta"].real(), adapt["engaged"].flag(),
                   adapt["iter"].integer(), m["eval_elbo"].integer(),
                   m["output_samples"].integer(), run.interrupt, run.logger, init_writer,
                   results[0], diagnostics[0]);
  };
  using stan::model::model_base;
  if (m["algorithm"].text() == "fullrank") return call(advi::fullrank<model_base>);
  return call(advi::meanfield<model_base>);
}

}  // namespace onebasin
