// method=pathfinder: one path, or several with importance resampling.
#include "output_files.hpp"
#include "run.hpp"

#include <stan/services/pathfinder/multi.hpp>
#include <stan/services/pathfinder/single.hpp>

#include <stdexcept>

namespace onebasin {
namespace {

namespace service = stan::services::pathfinder;

int one_path(Run& run, bool save_paths) {
  const Node& m = run.method;
  const auto inits = run.inits(1);
  NullWriter init_writer;
  auto results = run.results(1);
  const bool has_name = !run.diagnostic_path().empty();
  const bool save = has_name || save_paths;
  auto paths
      = run.json_files(has_name ? run.diagnostic_path() : run.output_path(), "", 1, save);
  return service::pathfinder_lbfgs_single<false, false>(
      run.model, *inits[0], run.seed, run.id, run.init_radius(), m["history_size"].integer(),
      m["init_alpha"].real(), m["tol_obj"].real(), m["tol_rel_obj"].real(), m["tol_grad"].real(),
      m["tol_rel_grad"].real(), m["tol_param"].real(), m["max_lbfgs_iters"].integer(),
      m["num_elbo_draws"].integer(), m["num_draws"].integer(), save, run.refresh, run.interrupt,
      run.logger, init_writer, results[0], paths[0], m["calculate_lp"].flag());
}

int several_paths(Run& run, int num_paths, bool save_paths) {
  const Node& m = run.method;
  const auto inits = run.inits(num_paths);
  std::vector<NullWriter> init_writers(num_paths);
  CsvWriter result = run.result_file(numbered_names(run.output_path(), "", "", 0, 1)[0]);
  const bool has_name = !run.diagnostic_path().empty();
  const bool save = has_name || save_paths;
  std::vector<CsvWriter> draws;
  for (const std::string& name : numbered_names(run.output_path(), "_path", "",
                                                static_cast<int>(run.id), num_paths)) {
    if (save)
      draws.push_back(run.result_file(name));
    else
      draws.emplace_back();
  }
  auto paths = run.json_files(has_name ? run.diagnostic_path() : run.output_path(), "_path",
                              num_paths, save);
  JsonWriter unused;
  return service::pathfinder_lbfgs_multi(
      run.model, inits, run.seed, run.id, run.init_radius(), m["history_size"].integer(),
      m["init_alpha"].real(), m["tol_obj"].real(), m["tol_rel_obj"].real(), m["tol_grad"].real(),
      m["tol_rel_grad"].real(), m["tol_param"].real(), m["max_lbfgs_iters"].integer(),
      m["num_elbo_draws"].integer(), m["num_draws"].integer(), m["num_psis_draws"].integer(),
      num_paths, save, run.refresh, run.interrupt, run.logger, init_writers, draws, paths, result,
      unused, m["calculate_lp"].flag(), m["psis_resample"].flag());
}

}  // namespace

int run_pathfinder(Run& run) {
  const Node& m = run.method;
  if (run.model.num_params_r() == 0)
    throw std::invalid_argument("Model has 0 parameters, cannot run Pathfinder.");
  const int num_paths = m["num_paths"].integer();
  const bool save_paths = m["save_single_paths"].flag();
  if (m["num_psis_draws"].integer() > static_cast<long long>(m["num_draws"].integer()) * num_paths)
    run.logger.info(
        "Warning: num_psis_draws is larger than num_draws * num_paths, so draws will be repeated.");
  return num_paths == 1 ? one_path(run, save_paths) : several_paths(run, num_paths, save_paths);
}

}  // namespace onebasin
