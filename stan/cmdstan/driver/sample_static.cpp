// HMC with a fixed integration time. Stan runs one chain of it a process.
#include "sample.hpp"

#include <stan/services/sample/hmc_static_dense_e.hpp>
#include <stan/services/sample/hmc_static_dense_e_adapt.hpp>
#include <stan/services/sample/hmc_static_diag_e.hpp>
#include <stan/services/sample/hmc_static_diag_e_adapt.hpp>
#include <stan/services/sample/hmc_static_unit_e.hpp>
#include <stan/services/sample/hmc_static_unit_e_adapt.hpp>

namespace onebasin {

namespace services = stan::services::sample;

namespace {

int run_adapt(Run& run, const SampleSettings& s, Chains& c) {
  const auto& init = *c.inits[0];
  if (s.metric == "unit_e")
    return services::hmc_static_unit_e_adapt(
        run.model, init, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples, s.thin,
        s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time, s.delta, s.gamma,
        s.kappa, s.t0, run.interrupt, run.logger, c.init_writers[0], c.results[0],
        c.diagnostics[0]);
  const auto& metric = *c.metrics[0];
  if (s.metric == "diag_e")
    return services::hmc_static_diag_e_adapt(
        run.model, init, metric, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples,
        s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time, s.delta,
        s.gamma, s.kappa, s.t0, s.init_buffer, s.term_buffer, s.window, run.interrupt, run.logger,
        c.init_writers[0], c.results[0], c.diagnostics[0]);
  return services::hmc_static_dense_e_adapt(
      run.model, init, metric, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples,
      s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time, s.delta,
      s.gamma, s.kappa, s.t0, s.init_buffer, s.term_buffer, s.window, run.interrupt, run.logger,
      c.init_writers[0], c.results[0], c.diagnostics[0]);
}

int run_fixed(Run& run, const SampleSettings& s, Chains& c) {
  const auto& init = *c.inits[0];
  if (s.metric == "unit_e")
    return services::hmc_static_unit_e(
        run.model, init, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples, s.thin,
        s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time, run.interrupt,
        run.logger, c.init_writers[0], c.results[0], c.diagnostics[0]);
  const auto& metric = *c.metrics[0];
  if (s.metric == "diag_e")
    return services::hmc_static_diag_e(
        run.model, init, metric, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples,
        s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time,
        run.interrupt, run.logger, c.init_writers[0], c.results[0], c.diagnostics[0]);
  return services::hmc_static_dense_e(
      run.model, init, metric, run.seed, run.id, run.init_radius(), s.num_warmup, s.num_samples,
      s.thin, s.save_warmup, run.refresh, s.stepsize, s.stepsize_jitter, s.int_time, run.interrupt,
      run.logger, c.init_writers[0], c.results[0], c.diagnostics[0]);
}

}  // namespace

int run_static(Run& run, const SampleSettings& s, Chains& c) {
  return s.engaged ? run_adapt(run, s, c) : run_fixed(run, s, c);
}

}  // namespace onebasin
