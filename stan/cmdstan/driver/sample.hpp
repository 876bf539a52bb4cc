// What the samplers share. Each engine has its own translation unit, since the services' templates
// are what the compiler's time and memory go to.
#pragma once

#include "run.hpp"

#include <string>
#include <vector>

namespace onebasin {

struct SampleSettings {
  explicit SampleSettings(const Node& sample);

  int num_chains;
  int num_warmup;
  int num_samples;
  int thin;
  bool save_warmup;
  double stepsize;
  double stepsize_jitter;
  std::string metric;
  std::string metric_file;
  int max_depth;
  double int_time;
  bool engaged;
  double delta;
  double gamma;
  double kappa;
  double t0;
  unsigned init_buffer;
  unsigned term_buffer;
  unsigned window;
  bool save_metric;
};

// One entry a chain of everything that the services read and write.
struct Chains {
  Chains(const Run& run, const SampleSettings& settings);

  std::vector<Context> inits;
  std::vector<Context> metrics;
  std::vector<NullWriter> init_writers;
  std::vector<CsvWriter> results;
  std::vector<CsvWriter> diagnostics;
  std::vector<JsonWriter> metric_files;
};

int run_nuts_adapt(Run& run, const SampleSettings& settings, Chains& chains);
int run_nuts(Run& run, const SampleSettings& settings, Chains& chains);
int run_static(Run& run, const SampleSettings& settings, Chains& chains);

}  // namespace onebasin
