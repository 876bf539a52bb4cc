// method=diagnose: gradients against finite differences.
#include "run.hpp"

#include <stan/services/diagnose/diagnose.hpp>

namespace onebasin {

int run_diagnose(Run& run) {
  const Node& test = run.method["test"].selected();
  const auto inits = run.inits(1);
  auto results = run.results(1);
  NullWriter init_writer;
  return stan::services::diagnose::diagnose(
      run.model, *inits[0], run.seed, run.id, run.init_radius(), test["epsilon"].real(),
      test["error"].real(), run.interrupt, run.logger, init_writer, results[0]);
}

}  // namespace onebasin
