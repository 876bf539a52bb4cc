// method=sample: settles what all samplers share, then hands over to the engine.
#include "sample.hpp"

#include <stan/services/error_codes.hpp>
#include <stan/services/util/create_unit_e_dense_inv_metric.hpp>
#include <stan/services/util/create_unit_e_diag_inv_metric.hpp>
#include <stan/services/sample/fixed_param.hpp>

#include <memory>
#include <stdexcept>

namespace onebasin {

SampleSettings::SampleSettings(const Node& sample)
    : num_chains(sample["num_chains"].integer()),
      num_warmup(sample["num_warmup"].integer()),
      num_samples(sample["num_samples"].integer()),
      thin(sample["thin"].integer()),
      save_warmup(sample["save_warmup"].flag()) {
  const Node& hmc = *sample["algorithm"].find("hmc");
  stepsize = hmc["stepsize"].real();
  stepsize_jitter = hmc["stepsize_jitter"].real();
  metric = hmc["metric"].text();
  metric_file = hmc["metric_file"].text();
  max_depth = hmc["engine"]["nuts"]["max_depth"].integer();
  int_time = hmc["engine"]["static"]["int_time"].real();
  const Node& adapt = sample["adapt"];
  engaged = adapt["engaged"].flag();
  delta = adapt["delta"].real();
  gamma = adapt["gamma"].real();
  kappa = adapt["kappa"].real();
  t0 = adapt["t0"].real();
  init_buffer = adapt["init_buffer"].natural();
  term_buffer = adapt["term_buffer"].natural();
  window = adapt["window"].natural();
  save_metric = adapt["save_metric"].flag();
}

namespace {

// The same contexts that the services make where no metric is given; making them here halves the
// number of service templates that the compiler has to go through.
Context unit_metric(const std::string& metric, std::size_t size) {
  using namespace stan::services::util;
  if (metric == "dense_e")
    return std::make_shared<stan::io::array_var_context>(create_unit_e_dense_inv_metric(size));
  return std::make_shared<stan::io::array_var_context>(create_unit_e_diag_inv_metric(size));
}

void check(const SampleSettings& settings, bool is_static, bool has_parameters) {
  if (is_static && settings.num_chains > 1)
    throw std::invalid_argument(
        "Argument 'num_chains' is unavailable for the 'static' HMC engine.");
  if (settings.engaged && settings.num_warmup == 0 && has_parameters)
    throw std::invalid_argument(
        "The number of warmup samples (num_warmup) must be greater than zero if adaptation is "
        "enabled.");
  if (settings.save_metric && !settings.engaged)
    throw std::invalid_argument(
        "Saving the adapted metric (save_metric=1) can only be enabled when adaptation is engaged "
        "(adapt engaged=1)");
  if (settings.save_metric && is_static)
    throw std::invalid_argument(
        "Error: Stan's static HMC does not report its metric, so save_metric=1 is not available.");
}

int fixed_param(Run& run, const SampleSettings& settings) {
  const int chains = settings.num_chains;
  auto inits = run.inits(chains);
  auto results = run.results(chains);
  auto diagnostics = run.diagnostics(chains);
  std::vector<NullWriter> init_writers(chains);
  return stan::services::sample::fixed_param(
      run.model, chains, inits, run.seed, run.id, run.init_radius(), settings.num_samples,
      settings.thin, run.refresh, run.interrupt, run.logger, init_writers, results, diagnostics);
}

}  // namespace

Chains::Chains(const Run& run, const SampleSettings& settings)
    : inits(run.inits(settings.num_chains)), init_writers(settings.num_chains) {
  const int chains = settings.num_chains;
  if (settings.metric == "unit_e")
    metrics.resize(chains);
  else if (settings.metric_file.empty())
    metrics.assign(chains, unit_metric(settings.metric, run.model.num_params_r()));
  else
    metrics = read_contexts(settings.metric_file, static_cast<int>(run.id), chains);
  results = run.results(chains);
  diagnostics = run.diagnostics(chains);
  metric_files = run.json_files(run.output_path(), "_metric", chains, settings.save_metric);
}

int run_sample(Run& run) {
  const SampleSettings settings(run.method);
  const Node& algorithm = run.method["algorithm"];
  if (algorithm.text() == "fixed_param") return fixed_param(run, settings);
  const bool is_static = algorithm.selected()["engine"].text() == "static";
  check(settings, is_static, run.model.num_params_r() > 0);
  Chains chains(run, settings);
  if (is_static) return run_static(run, settings, chains);
  return settings.engaged ? run_nuts_adapt(run, settings, chains)
                          : run_nuts(run, settings, chains);
}

}  // namespace onebasin
