// method=log_prob: the log density and its gradient at given points.
#include "input.hpp"
#include "output_files.hpp"
#include "run.hpp"

#include <stan/model/log_prob_grad.hpp>

#include <cstddef>
#include <iostream>
#include <stdexcept>

namespace onebasin {
namespace {

using Point = std::vector<double>;

// `params_r` as a vector, or as an array of vectors.
std::vector<Point> unconstrained_points(const std::string& path, std::size_t size) {
  const auto context = read_context(path);
  const Point values = context->vals_r("params_r");
  const std::vector<std::size_t> dims = context->dims_r("params_r");
  const std::size_t rows = dims.size() == 2 ? dims[0] : 1;
  if (dims.empty() || dims.size() > 2 || dims.back() != size)
    throw std::invalid_argument("Error: `params_r` in \"" + path + "\" must hold "
                                + std::to_string(size) + " values for each point.\n");
  std::vector<Point> points(rows, Point(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    points[i % rows][i / rows] = values[i];  // the context is column-major
  return points;
}

// Calls the model's own way back to the unconstrained scale.
template <typename Transform>
Point unconstrain(const Transform& transform) {
  Point result;
  try {
    transform(result);
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string(error.what())
                                + "\nBad or missing parameter values, cannot unconstrain.\n");
  }
  return result;
}

std::vector<Point> constrained_points(const std::string& path,
                                      const stan::model::model_base& model) {
  if (!ends_with(path, ".csv")) {
    const auto context = read_context(path);
    return {unconstrain([&](Point& result) {
      std::vector<int> integers;
      model.transform_inits(*context, integers, result, &std::cerr);
    })};
  }
  std::vector<std::string> names;
  model.constrained_param_names(names, false, false);
  std::vector<Point> points;
  for (const Point& row : read_draws(path, names))
    points.push_back(unconstrain(
        [&](Point& result) { model.unconstrain_array(row, result, &std::cerr); }));
  return points;
}

std::vector<Point> read_points(const Run& run) {
  const std::string& unconstrained = run.method["unconstrained_params"].text();
  const std::string& constrained = run.method["constrained_params"].text();
  if (unconstrained.empty() == constrained.empty())
    throw std::invalid_argument(
        "Error: log_prob needs exactly one of unconstrained_params and constrained_params.\n");
  const std::string& path = constrained.empty() ? unconstrained : constrained;
  refuse_overwriting({path}, run.result_names(1));
  return constrained.empty() ? unconstrained_points(path, run.model.num_params_r())
                             : constrained_points(path, run.model);
}

template <bool jacobian>
double log_density(const stan::model::model_base& model, Point& point, Point& gradient) {
  std::vector<int> integers;
  return stan::model::log_prob_grad<true, jacobian>(model, point, integers, gradient, &std::cerr);
}

}  // namespace

int run_log_prob(Run& run) {
  if (run.model.num_params_r() == 0)
    throw std::invalid_argument("Model " + run.model.model_name()
                                + " has no parameters, nothing to estimate.");
  std::vector<Point> points = read_points(run);
  CsvWriter result = std::move(run.results(1)[0]);
  std::vector<std::string> header;
  run.model.unconstrained_param_names(header, false, false);
  for (std::string& name : header) name = "g_" + name;
  header.insert(header.begin(), "lp__");
  result(header);
  const bool jacobian = run.method["jacobian"].flag();
  for (Point& point : points) {
    Point gradient;
    const double lp = jacobian ? log_density<true>(run.model, point, gradient)
                               : log_density<false>(run.model, point, gradient);
    gradient.insert(gradient.begin(), lp);
    result(gradient);
  }
  return 0;
}

}  // namespace onebasin
