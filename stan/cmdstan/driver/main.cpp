// The executable's entry: reads the arguments, conditions the model on data, calls a method.
#include "arguments.hpp"
#include "config_file.hpp"
#include "input.hpp"
#include "output_files.hpp"
#include "run.hpp"

#include <stan/math/prim/core/init_threadpool_tbb.hpp>
#include <stan/math/rev/core/profiling.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#ifdef __GLIBC__
#include <malloc.h>
#endif

// What stanc writes at the end of every model.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);
stan::math::profile_map& get_stan_profile_data();

namespace onebasin {
namespace {

using Method = int (*)(Run&);

Method method_named(const std::string& name) {
  static const std::map<std::string, Method> methods{
      {"sample", run_sample},           {"optimize", run_optimize},
      {"variational", run_variational}, {"diagnose", run_diagnose},
      {"pathfinder", run_pathfinder},   {"generate_quantities", run_generate_quantities},
      {"log_prob", run_log_prob},       {"laplace", run_laplace}};
  const auto found = methods.find(name);
  if (found == methods.end())
    throw std::runtime_error("Error: method=" + name + " is not available in this driver.");
  return found->second;
}

// The number of threads comes from STAN_NUM_THREADS or from `num_threads`; Stan Math checks the
// former. Programs compiled without STAN_THREADS have one.
void settle_threads(Node& threads) {
#ifdef STAN_THREADS
  const int from_environment = stan::math::internal::get_num_threads();
  if (threads.given && from_environment != 1 && from_environment != threads.integer())
    throw std::invalid_argument("STAN_NUM_THREADS= " + std::to_string(from_environment)
                                + " but argument num_threads= "
                                + std::to_string(threads.integer())
                                + ". Please either only set one or make sure they are equal.");
  threads.preset = static_cast<long long>(from_environment);
  if (!threads.given) threads.value = threads.preset;
#endif
  stan::math::init_threadpool_tbb(threads.integer());
}

// Left to itself, glibc gives matrices of some 100 KB back to the kernel whenever they are freed, and
// asks for them again at the next gradient: up to half of the time of a network of 50 units on 400
// observations. What is freed is kept instead, unless the environment says otherwise.
void keep_freed_memory() {
#ifdef __GLIBC__
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") || std::getenv("MALLOC_MMAP_THRESHOLD_")) return;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

unsigned settle_seed(Node& seed) {
  if (seed.value == seed.preset) {
    seed.preset = static_cast<long long>(std::random_device{}());
    seed.value = seed.preset;
  }
  return seed.natural();
}

void write_profile(const Node& output) {
  const stan::math::profile_map& profiles = get_stan_profile_data();
  if (profiles.empty()) return;
  const auto file = open_output(output["profile_file"].text(), output["sig_figs"].integer());
  *file << "name,thread_id,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,"
           "autodiff_calls,no_autodiff_calls\n";
  for (const auto& [key, info] : profiles)
    *file << key.first << ',' << key.second << ',' << info.get_fwd_time() + info.get_rev_time()
          << ',' << info.get_fwd_time() << ',' << info.get_rev_time() << ','
          << info.get_chain_stack_used() << ',' << info.get_nochain_stack_used() << ','
          << info.get_num_rev_passes() << ',' << info.get_num_no_AD_fwd_passes() << '\n';
}

int run(const std::vector<std::string>& tokens) {
  Node arguments = argument_table();
  switch (read_arguments(arguments, tokens)) {
    case Outcome::done:
      return EXIT_SUCCESS;
    case Outcome::failed:
      return EXIT_FAILURE;
    case Outcome::run:
      break;
  }
  const Method method = method_named(arguments["method"].text());
  const Node& output = arguments["output"];
  check_output_name(output["file"].text());
  check_output_name(output["diagnostic_file"].text());
  settle_threads(*arguments.find("num_threads"));
  const unsigned seed = settle_seed(*arguments.find("random")->find("seed"));

  for (const std::string& line : describe(arguments)) std::cout << line << '\n';
  std::cout << std::endl;

  const auto data = read_context(arguments["data"]["file"].text());
  const std::unique_ptr<stan::model::model_base> model(&new_model(*data, seed, &std::cout));
  if (output["save_cmdstan_config"].flag()) write_config_file(*model, arguments);

  Run the_run(*model, arguments, seed);
  const int code = method(the_run);
  write_profile(output);
  return code == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace onebasin

int main(int argc, char* argv[]) {
  onebasin::keep_freed_memory();
  try {
    return onebasin::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    // cmdstanpy shows its user the lines that start with `Er` or `Ex`, and no others.
    const std::string what = error.what();
    const bool marked = what.rfind("Er", 0) == 0 || what.rfind("Ex", 0) == 0;
    std::cerr << (marked ? "" : "Error: ") << what << std::endl;
    return EXIT_FAILURE;
  }
}
