// The No-U-Turn sampler with adaptation.
#include "sample.hpp"

#include <stan/services/sample/hmc_nuts_dense_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_unit_e_adapt.hpp>

namespace onebasin {

namespace services = stan::services::sample;

int run_nuts_adapt(Run& run, const SampleSettings& s, Chains& c) {
  if (s.metric == "unit_e")
    return services::hmc_nuts_unit_e_adapt(
        run.model, s.num_chains, c.inits, run.seed, run.id, run.init_radius(), s.num_warmup,
        s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter,
        s.max_depth, s.delta, s.gamma, s.kappa, s.t0, run.interrupt, run.logger, c.init_writers,
        c.results, c.diagnostics, c.metric_files);
  if (s.metric == "diag_e")
    return services::hmc_nuts_diag_e_adapt(
        run.model, s.num_chains, c.inits, c.metrics, run.seed, run.id, run.init_radius(),
        s.num_warmup, s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize,
        s.stepsize_jitter, s.max_depth, s.delta, s.gamma, s.kappa, s.t0, s.init_buffer,
        s.term_buffer, s.window, run.interrupt, run.logger, c.init_writers, c.results,
        c.diagnostics, c.metric_files);
  return services::hmc_nuts_dense_e_adapt(
      run.model, s.num_chains, c.inits, c.metrics, run.seed, run.id, run.init_radius(),
      s.num_warmup, s.num_samples, s.thin, s.save_warmup, run.refresh, s.stepsize,
      s.stepsize_jitter, s.max_depth, s.delta, s.gamma, s.kappa, s.t0, s.init_buffer,
      s.term_buffer, s.window, run.interrupt, run.logger, c.init_writers, c.results, c.diagnostics,
      c.metric_files);
}

}  // namespace onebasin
