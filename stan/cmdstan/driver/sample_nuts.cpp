// The No-U-Turn sampler with a given step size and metric.
#include "sample.hpp"

#include <stan/services/sample/hmc_nuts_dense_e.hpp>
#include <stan/services/sample/hmc_nuts_diag_e.hpp>
#include <stan/services/sample/hmc_nuts_unit_e.hpp>

namespace onebasin {

namespace services = stan::services::sample;

int run_nuts(Run& run, const SampleSettings& s, Chains& c) {
  if (s.metric == "unit_e")
    return services::hmc_nuts_unit_e(
        run.model, s.num_chains, c.inits, run.seed, run.id, run.init_radius(), s.num_warmup,
        s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter,
        s.max_depth, run.interrupt, run.logger, c.init_writers, c.results, c.diagnostics);
  if (s.metric == "diag_e")
    return services::hmc_nuts_diag_e(
        run.model, s.num_chains, c.inits, c.metrics, run.seed, run.id, run.init_radius(),
        s.num_warmup, s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize,
        s.stepsize_jitter, s.max_depth, run.interrupt, run.logger, c.init_writers, c.results,
        c.diagnostics);
  return services::hmc_nuts_dense_e(
      run.model, s.num_chains, c.inits, c.metrics, run.seed, run.id, run.init_radius(),
      s.num_warmup, s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize,
      s.stepsize_jitter, s.max_depth, run.interrupt, run.logger, c.init_writers, c.results,
      c.diagnostics);
}

}  // namespace onebasin
