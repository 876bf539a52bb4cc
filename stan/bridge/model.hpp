// A Stan model with its data, behind the functions of the interface.
#pragma once

#include "messages.hpp"

#include <stan/io/chained_var_context.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/io/random_var_context.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <stan/model/log_prob_propto.hpp>
#include <stan/model/model_base.hpp>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

// What stanc writes for every program.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);

namespace onebasin {

using Vector = Eigen::VectorXd;
using ConstVectorMap = Eigen::Map<const Vector>;
using VectorMap = Eigen::Map<Vector>;

// Who may use the memory of automatic differentiation: with STAN_THREADS every thread has its own,
// otherwise there is one for all, and one call at a time.
class Tape {
#ifdef STAN_THREADS
 public:
  Tape() { thread_local stan::math::ChainableStack of_this_thread; }
#else
 public:
  Tape() : lock_(mutex()) {}

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  std::lock_guard<std::recursive_mutex> lock_;
#endif
};

// Variables from JSON text, from a file whose name ends in .json, or none.
inline std::unique_ptr<stan::io::var_context> read_variables(const char* text) {
  const std::string json = text == nullptr ? "" : text;
  if (json.empty()) return std::make_unique<stan::io::empty_var_context>();
  const std::string ending = ".json";
  if (json.size() > ending.size()
      && json.compare(json.size() - ending.size(), ending.size(), ending) == 0) {
    std::ifstream file(json);
    if (!file.good()) throw std::invalid_argument("cannot open the file " + json);
    return std::make_unique<stan::json::json_data>(file);
  }
  std::istringstream stream(json);
  return std::make_unique<stan::json::json_data>(stream);
}

class Model {
 public:
  Model(const char* data, unsigned int seed, PrintCallback print) : print_(print) {
    Messages messages(print_);
    const auto variables = read_variables(data);
    model_.reset(&new_model(*variables, seed, messages));
    name_ = model_->model_name();
    model_->unconstrained_param_names(unconstrained_names_, false, false);
  }

  std::size_t size() const { return model_->num_params_r(); }
  const std::string& name() const { return name_; }
  const std::vector<std::string>& unconstrained_names() const { return unconstrained_names_; }
  std::vector<std::string> compile_info() const { return model_->model_compile_info(); }

  std::vector<std::string> names(bool transformed, bool generated) const {
    std::vector<std::string> names;
    model_->constrained_param_names(names, transformed, generated);
    return names;
  }

  // A line a variable: its name and the lengths of its axes.
  std::string variables(bool transformed, bool generated) const {
    std::vector<std::string> names;
    std::vector<std::vector<std::size_t>> lengths;
    model_->get_param_names(names, transformed, generated);
    model_->get_dims(lengths, transformed, generated);
    std::ostringstream lines;
    for (std::size_t i = 0; i < names.size(); ++i) {
      lines << names[i];
      for (const std::size_t length : lengths[i]) lines << ' ' << length;
      lines << '\n';
    }
    return lines.str();
  }

  void constrain(bool transformed, bool generated, const double* point, stan::rng_t& rng,
                 double* out) const {
    Messages messages(print_);
    Vector unconstrained = ConstVectorMap(point, size());
    Vector values;
    model_->write_array(rng, unconstrained, values, transformed, generated, messages);
    VectorMap(out, values.size()) = values;
  }

  void unconstrain(const double* values, std::size_t count, double* out) const {
    Messages messages(print_);
    const Vector constrained = ConstVectorMap(values, count);
    Vector point;
    model_->unconstrain_array(constrained, point, messages);
    VectorMap(out, size()) = point;
  }

  void unconstrain(const char* json, double* out) const {
    Messages messages(print_);
    Vector point;
    model_->transform_inits(*read_variables(json), point, messages);
    VectorMap(out, size()) = point;
  }

  // A point of finite density: what `json` lacks is uniform within the radius.
  void initialize(const char* json, stan::rng_t& rng, double radius, int tries, bool jacobian,
                  double* out) const {
    const auto given = read_variables(json);
    std::string reason = "no attempt was allowed";
    for (int attempt = 0; attempt < tries; ++attempt) {
      try {
        Messages messages(print_);
        stan::io::random_var_context random(*model_, rng, radius, radius <= 0);
        stan::io::chained_var_context both(*given, random);
        Vector point;
        model_->transform_inits(both, point, messages);
        VectorMap(out, size()) = point;
        if (std::isfinite(log_density(false, jacobian, out))) return;
        reason = "the log density is not finite";
      } catch (const std::domain_error& rejection) {
        reason = rejection.what();
      }
    }
    throw std::runtime_error("no initial point was found in " + std::to_string(tries)
                             + " attempts; at the last, " + reason);
  }

  double log_density(bool propto, bool jacobian, const double* point) const {
    Messages messages(print_);
    Vector values = ConstVectorMap(point, size());
    // Of plain numbers every term is constant: what may be dropped is only seen by differentiation.
    if (propto)
      return jacobian ? stan::model::log_prob_propto<true>(*model_, values, messages)
                      : stan::model::log_prob_propto<false>(*model_, values, messages);
    return jacobian ? model_->log_prob_jacobian(values, messages)
                    : model_->log_prob(values, messages);
  }

  double gradient(bool propto, bool jacobian, const Vector& point, Vector& gradient) const {
    Messages messages(print_);
    Vector values = point;
    using stan::model::log_prob_grad;
    if (propto)
      return jacobian ? log_prob_grad<true, true>(*model_, values, gradient, messages)
                      : log_prob_grad<true, false>(*model_, values, gradient, messages);
    return jacobian ? log_prob_grad<false, true>(*model_, values, gradient, messages)
                    : log_prob_grad<false, false>(*model_, values, gradient, messages);
  }

  double gradient(bool propto, bool jacobian, const double* point, double* out) const {
    Vector derivatives(size());
    const double value = gradient(propto, jacobian, ConstVectorMap(point, size()), derivatives);
    VectorMap(out, size()) = derivatives;
    return value;
  }

  // Central differences of gradients; the step balances their error against rounding.
  double hessian(bool propto, bool jacobian, const double* point, double* gradient_out,
                 double* hessian_out) const {
    const Vector centre = ConstVectorMap(point, size());
    const Eigen::Index count = centre.size();
    Eigen::MatrixXd rows(count, count);
    for (Eigen::Index i = 0; i < count; ++i)
      rows.row(i) = slope(propto, jacobian, centre, Vector::Unit(count, i),
                          STEP * std::max(1.0, std::abs(centre[i])));
    Eigen::Map<Eigen::MatrixXd>(hessian_out, count, count) = 0.5 * (rows + rows.transpose());
    return gradient(propto, jacobian, point, gradient_out);
  }

  double hessian_vector_product(bool propto, bool jacobian, const double* point,
                                const double* direction, double* out) const {
    const Vector centre = ConstVectorMap(point, size());
    const Vector along = ConstVectorMap(direction, size());
    const double length = along.norm();
    VectorMap product(out, size());
    if (length > 0)
      product = slope(propto, jacobian, centre, along, STEP * (1 + centre.norm()) / length);
    else
      product.setZero();
    return log_density(propto, jacobian, point);
  }

 private:
  // The third root of the rounding of a double.
  static constexpr double STEP = 6.0554544523933429e-06;

  Vector slope(bool propto, bool jacobian, const Vector& centre, const Vector& along,
               double step) const {
    Vector ahead(size()), behind(size());
    gradient(propto, jacobian, centre + step * along, ahead);
    gradient(propto, jacobian, centre - step * along, behind);
    return (ahead - behind) / (2 * step);
  }

  PrintCallback print_;
  std::unique_ptr<stan::model::model_base> model_;
  std::string name_;
  std::vector<std::string> unconstrained_names_;
};

}  // namespace onebasin
