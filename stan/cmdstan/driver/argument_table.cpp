// Every argument of every method, in the order in which config blocks list them.
#include "arguments.hpp"

#include <cstdlib>
#include <limits>

namespace onebasin {
namespace {

using Children = std::vector<Node>;

Node inner(Kind kind, const char* name, const char* about, Children children) {
  Node node;
  node.kind = kind;
  node.name = name;
  node.about = about;
  node.children = std::move(children);
  return node;
}

Node group(const char* name, const char* about, Children children) {
  return inner(Kind::group, name, about, std::move(children));
}

Node leaf(const char* name, const char* about) { return inner(Kind::leaf, name, about, {}); }

Node choice(const char* name, const char* preset, const char* about, Children options) {
  Node node = inner(Kind::choice, name, about, std::move(options));
  node.value = node.preset = std::string(preset);
  for (const Node& option : node.children)
    node.allowed += (node.allowed.empty() ? "" : ", ") + option.name;
  return node;
}

Node value(Kind kind, const char* name, Value preset, const char* about) {
  Node node = inner(kind, name, about, {});
  node.value = node.preset = std::move(preset);
  return node;
}

Node check(Node node, std::string allowed, std::function<bool(const Value&)> valid) {
  node.allowed = std::move(allowed);
  node.valid = std::move(valid);
  return node;
}

Node between(Node node, long long low, long long high, std::string allowed) {
  return check(std::move(node), std::move(allowed), [low, high](const Value& value) {
    return std::get<long long>(value) >= low && std::get<long long>(value) <= high;
  });
}

constexpr long long max_int = std::numeric_limits<int>::max();

Node positive_integer(const char* name, int preset, const char* about) {
  return between(value(Kind::integer, name, Value(static_cast<long long>(preset)), about), 1,
                 max_int, std::string("0 < ") + name);
}

Node count(const char* name, int preset, const char* about) {
  return between(value(Kind::integer, name, Value(static_cast<long long>(preset)), about), 0,
                 max_int, std::string("0 <= ") + name);
}

Node natural(const char* name, long long preset, const char* about) {
  Node node = value(Kind::natural, name, Value(preset), about);
  node.allowed = "All";
  return node;
}

Node positive_real(const char* name, double preset, const char* about) {
  return check(value(Kind::real, name, Value(preset), about), std::string("0 < ") + name,
               [](const Value& value) { return std::get<double>(value) > 0; });
}

Node boolean(const char* name, bool preset, const char* about) {
  Node node = value(Kind::boolean, name, Value(preset), about);
  node.allowed = "[0, 1, false, true]";
  return node;
}

Node text(const char* name, const char* preset, const char* about) {
  Node node = value(Kind::text, name, Value(std::string(preset)), about);
  node.allowed = "All";
  return node;
}

Node sample() {
  Node adapt = group("adapt", "Warm-up adaptation",
      {boolean("engaged", true, "Adapt at all?"),
       positive_real("gamma", 0.05, "Regularisation scale of step size adaptation"),
       check(value(Kind::real, "delta", Value(0.8), "Target acceptance statistic"),
             "0.1 <= delta < 1",
             [](const Value& v) { return std::get<double>(v) >= 0.1 && std::get<double>(v) < 1; }),
       positive_real("kappa", 0.75, "Relaxation exponent of step size adaptation"),
       positive_real("t0", 10, "Iteration offset of step size adaptation"),
       natural("init_buffer", 75, "Width of the first fast interval"),
       natural("term_buffer", 50, "Width of the last fast interval"),
       natural("window", 25, "First width of the slow intervals"),
       boolean("save_metric", false, "Write the adapted metric and step size as JSON?")});
  Node engine = choice("engine", "nuts", "How long a trajectory is",
      {group("static", "Fixed integration time",
             {positive_real("int_time", 6.28318530717959, "Integration time")}),
       group("nuts", "The No-U-Turn sampler",
             {positive_integer("max_depth", 10, "Deepest tree")})});
  Node metric = choice("metric", "diag_e", "Shape of the inverse mass matrix",
                       {leaf("unit_e", "Unit"), leaf("diag_e", "Diagonal"),
                        leaf("dense_e", "Dense")});
  Node hmc = group("hmc", "Hamiltonian Monte Carlo",
      {engine, metric, text("metric_file", "", "File with `inv_metric`"),
       positive_real("stepsize", 1, "Initial step size"),
       check(value(Kind::real, "stepsize_jitter", Value(0.0), "Uniform jitter of the step size"),
             "0 <= stepsize_jitter <= 1",
             [](const Value& v) { return std::get<double>(v) >= 0 && std::get<double>(v) <= 1; })});
  return group("sample", "Markov chain Monte Carlo",
      {count("num_samples", 1000, "Sampling iterations"),
       count("num_warmup", 1000, "Warm-up iterations"),
       boolean("save_warmup", false, "Write warm-up draws too?"),
       positive_integer("thin", 1, "Write each thin-th draw"), adapt,
       choice("algorithm", "hmc", "Sampling algorithm",
              {hmc, leaf("fixed_param", "Keep the parameters fixed")}),
       positive_integer("num_chains", 1, "Chains in this process")});
}

Children line_search(bool limited_memory) {
  Children result{positive_real("init_alpha", 0.001, "First step of the line search"),
                  positive_real("tol_obj", 1e-12, "Tolerance on the objective"),
                  positive_real("tol_rel_obj", 1e4, "Relative tolerance on the objective"),
                  positive_real("tol_grad", 1e-8, "Tolerance on the gradient"),
                  positive_real("tol_rel_grad", 1e7, "Relative tolerance on the gradient"),
                  positive_real("tol_param", 1e-8, "Tolerance on the parameters")};
  if (limited_memory)
    result.push_back(positive_integer("history_size", 5, "Updates kept for the Hessian"));
  return result;
}

Node optimize() {
  return group("optimize", "Posterior mode or maximum likelihood",
      {choice("algorithm", "lbfgs", "Optimiser",
              {group("bfgs", "BFGS", line_search(false)),
               group("lbfgs", "Limited-memory BFGS", line_search(true)),
               group("newton", "Newton's method", {})}),
       boolean("jacobian", false, "Add the log Jacobian of the constraints?"),
       positive_integer("iter", 2000, "Most iterations"),
       boolean("save_iterations", false, "Write each iteration?")});
}

Node variational() {
  return group("variational", "Automatic differentiation variational inference",
      {choice("algorithm", "meanfield", "Family",
              {group("meanfield", "Diagonal Gaussian", {}), group("fullrank", "Full Gaussian", {})}),
       positive_integer("iter", 10000, "Most gradient steps"),
       positive_integer("grad_samples", 1, "Draws for each gradient"),
       positive_integer("elbo_samples", 100, "Draws for each ELBO"),
       positive_real("eta", 1, "Step size weight"),
       group("adapt", "Search for eta",
             {boolean("engaged", true, "Search at all?"),
              positive_integer("iter", 50, "Steps for each candidate")}),
       positive_real("tol_rel_obj", 0.01, "Relative tolerance on the ELBO"),
       positive_integer("eval_elbo", 100, "Steps between two ELBO evaluations"),
       positive_integer("output_samples", 1000, "Draws from the approximation")});
}

Node diagnose() {
  return group("diagnose", "Check the gradients",
      {choice("test", "gradient", "What to test",
              {group("gradient", "Against finite differences",
                     {positive_real("epsilon", 1e-6, "Finite difference step"),
                      positive_real("error", 1e-6, "Largest error allowed")})})});
}

Node generate_quantities() {
  return group("generate_quantities", "Generated quantities for draws of an earlier run",
      {text("fitted_params", "", "CSV file with the draws"),
       positive_integer("num_chains", 1, "Chains in this process")});
}

Node pathfinder() {
  Children children = line_search(true);
  for (Node node : {
           positive_integer("num_psis_draws", 1000, "Draws kept by importance resampling"),
           positive_integer("num_paths", 4, "Paths"),
           boolean("save_single_paths", false, "Write each path?"),
           boolean("psis_resample", true, "Resample by importance?"),
           boolean("calculate_lp", true, "Evaluate the log density of each draw?"),
           positive_integer("max_lbfgs_iters", 1000, "Most optimiser iterations"),
           positive_integer("num_draws", 1000, "Draws of each path"),
           positive_integer("num_elbo_draws", 25, "Draws for each ELBO")})
    children.push_back(node);
  return group("pathfinder", "Variational approximation along an optimiser's path",
               std::move(children));
}

Node log_prob() {
  return group("log_prob", "Log density and its gradient",
      {text("unconstrained_params", "", "File with `params_r`"),
       text("constrained_params", "", "File with the parameters by name"),
       boolean("jacobian", true, "Add the log Jacobian of the constraints?")});
}

Node laplace() {
  return group("laplace", "Gaussian around a mode",
      {text("mode", "", "CSV of an optimisation, or JSON"),
       boolean("jacobian", true, "Add the log Jacobian of the constraints?"),
       count("draws", 1000, "Draws"),
       boolean("calculate_lp", true, "Evaluate the log density of each draw?")});
}

Node num_threads() {
  const char* about = "Threads for chains and for reduce_sum";
#ifdef STAN_THREADS
  // The environment is read (and its faults reported) by main, which knows Stan's own rule.
  return check(value(Kind::integer, "num_threads", Value(1LL), about),
               "num_threads > 0 || num_threads == -1", [](const Value& v) {
                 const long long threads = std::get<long long>(v);
                 return threads > 0 || threads == -1;
               });
#else
  return between(value(Kind::integer, "num_threads", Value(1LL), about), 1, 1,
                 "1; more needs a program compiled with STAN_THREADS");
#endif
}

}  // namespace

Node argument_table() {
  constexpr long long largest_seed = std::numeric_limits<unsigned>::max();
  Node output = group("output", "Where results go",
      {text("file", "output.csv", "Results"),
       text("diagnostic_file", "", "Extra results, for finding faults"),
       count("refresh", 100, "Iterations between two progress lines; 0 for none"),
       between(value(Kind::integer, "sig_figs", Value(8LL), "Significant digits in files"), -1, 18,
               "0 <= sig_figs <= 18 || sig_figs == -1"),
       text("profile_file", "profile.csv", "Timings of profile blocks"),
       boolean("save_cmdstan_config", false, "Write these settings as JSON?")});
  Node root = group("", "",
      {choice("method", "sample", "What to do",
              {sample(), optimize(), variational(), diagnose(), generate_quantities(),
               pathfinder(), log_prob(), laplace()}),
       count("id", 1, "Number of the (first) chain"),
       group("data", "Input", {text("file", "", "Data, as JSON")}),
       text("init", "2", "Radius of random initial values, or a file with initial values"),
       group("random", "Random numbers",
             {between(value(Kind::wide, "seed", Value(-1LL), "Seed; -1 for a fresh one"), -1,
                      largest_seed, "integer between 0 and 4294967295, or -1")}),
       output, num_threads()});
  return root;
}

}  // namespace onebasin
