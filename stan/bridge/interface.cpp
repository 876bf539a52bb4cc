// The C interface of a program's library: BridgeStan's functions (`bs_`), and our own (`onebasin_`)
// for what BridgeStan has no function for.
#include "model.hpp"

#include <stan/version.hpp>

#include <map>
#include <utility>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct bs_rng {
  stan::rng_t generator;
};

struct bs_model {
  bs_model(const char* data, unsigned int seed, onebasin::PrintCallback print)
      : model(data, seed, print) {
    unconstrained_names = joined(model.unconstrained_names());
    info = description(model.compile_info());
    for (const bool transformed : {false, true})
      for (const bool generated : {false, true}) {
        const std::vector<std::string> all = model.names(transformed, generated);
        const int which = 2 * transformed + generated;
        counts[which] = all.size();
        names[which] = joined(all);
        variables[which] = model.variables(transformed, generated);
      }
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
    return text;
  }

  static std::string description(const std::vector<std::string>& compile_info) {
    std::string text = "Stan version: " + stan::MAJOR_VERSION + "." + stan::MINOR_VERSION + "."
                       + stan::PATCH_VERSION + "\nStan C++ Defines:\n";
#ifdef STAN_THREADS
    text += "\tSTAN_THREADS=true\n";
#else
    text += "\tSTAN_THREADS=false\n";
#endif
    text += "\tSTAN_MPI=false\n\tSTAN_OPENCL=false\n\tBRIDGESTAN_AD_HESSIAN=false\n"
            "Stan Compiler Details:\n";
    for (const std::string& line : compile_info) text += "\t" + line + "\n";
    return text;
  }

  onebasin::Model model;
  std::string unconstrained_names, info;
  std::string names[4], variables[4];
  std::size_t counts[4];
};

using onebasin::guarded;
using onebasin::Tape;

namespace {

int index(bool transformed, bool generated) { return 2 * transformed + generated; }

}  // namespace

// The version of BridgeStan whose interface this is.
EXPORT const int bs_major_version = 2;
EXPORT const int bs_minor_version = 9;
EXPORT const int bs_patch_version = 0;

EXPORT const char* onebasin_stan_version() {
  static const std::string version
      = stan::MAJOR_VERSION + "." + stan::MINOR_VERSION + "." + stan::PATCH_VERSION;
  return version.c_str();
}

// As `bs_model_construct`, but what this model prints, and no other, goes to a callback.
EXPORT bs_model* onebasin_construct(const char* data, unsigned int seed,
                                    onebasin::PrintCallback print, char** error) {
  bs_model* made = nullptr;
  guarded("model_construct", error, [&] {
    Tape tape;
    made = new bs_model(data, seed, print);
  });
  return made;
}

EXPORT bs_model* bs_model_construct(const char* data, unsigned int seed, char** error) {
  return onebasin_construct(data, seed, nullptr, error);
}

EXPORT void bs_model_destruct(bs_model* model) { delete model; }
EXPORT void bs_free_error_msg(char* message) { free(message); }

EXPORT int bs_set_print_callback(onebasin::PrintCallback callback, char**) {
  onebasin::print_callback() = callback;
  return 0;
}

EXPORT const char* bs_name(const bs_model* model) { return model->model.name().c_str(); }
EXPORT const char* bs_model_info(const bs_model* model) { return model->info.c_str(); }

EXPORT const char* bs_param_names(const bs_model* model, bool transformed, bool generated) {
  return model->names[index(transformed, generated)].c_str();
}

EXPORT const char* onebasin_variables(const bs_model* model, bool transformed, bool generated) {
  return model->variables[index(transformed, generated)].c_str();
}

EXPORT const char* bs_param_unc_names(const bs_model* model) {
  return model->unconstrained_names.c_str();
}

EXPORT int bs_param_num(const bs_model* model, bool transformed, bool generated) {
  return static_cast<int>(model->counts[index(transformed, generated)]);
}

EXPORT int bs_param_unc_num(const bs_model* model) {
  return static_cast<int>(model->model.size());
}

// The stream of a seed that CmdStan's chain of this number draws from.
EXPORT bs_rng* onebasin_rng_construct(unsigned int seed, unsigned int chain, char** error) {
  bs_rng* made = nullptr;
  guarded("rng_construct", error,
          [&] { made = new bs_rng{stan::services::util::create_rng(seed, chain)}; });
  return made;
}

EXPORT bs_rng* bs_rng_construct(unsigned int seed, char** error) {
  return onebasin_rng_construct(seed, 0, error);
}

EXPORT void bs_rng_destruct(bs_rng* rng) { delete rng; }

EXPORT int bs_param_constrain(const bs_model* model, bool transformed, bool generated,
                              const double* point, double* out, bs_rng* rng, char** error) {
  return guarded("param_constrain", error, [&] {
    if (generated && rng == nullptr)
      throw std::invalid_argument("generated quantities need a random number generator");
    Tape tape;
    stan::rng_t unused(0, 1, 0, 0);
    model->model.constrain(transformed, generated, point,
                           rng == nullptr ? unused : rng->generator, out);
  });
}

EXPORT int bs_param_unconstrain(const bs_model* model, const double* values, double* out,
                                char** error) {
  return guarded("param_unconstrain", error, [&] {
    Tape tape;
    model->model.unconstrain(values, model->counts[0], out);
  });
}

EXPORT int bs_param_unconstrain_json(const bs_model* model, const char* json, double* out,
                                     char** error) {
  return guarded("param_unconstrain_json", error, [&] {
    Tape tape;
    model->model.unconstrain(json, out);
  });
}

EXPORT int bs_param_initialize(const bs_model* model, const char* json, bs_rng* rng,
                               double radius, int tries, bool jacobian, double* out,
                               char** error) {
  return guarded("param_initialize", error, [&] {
    if (rng == nullptr) throw std::invalid_argument("a random number generator is needed");
    if (!(radius >= 0) || std::isinf(radius))
      throw std::invalid_argument("the radius must be finite and not negative");
    Tape tape;
    model->model.initialize(json, rng->generator, radius, tries, jacobian, out);
  });
}

EXPORT int bs_log_density(const bs_model* model, bool propto, bool jacobian, const double* point,
                          double* value, char** error) {
  return guarded("log_density", error, [&] {
    Tape tape;
    *value = model->model.log_density(propto, jacobian, point);
  });
}

EXPORT int bs_log_density_gradient(const bs_model* model, bool propto, bool jacobian,
                                   const double* point, double* value, double* gradient,
                                   char** error) {
  return guarded("log_density_gradient", error, [&] {
    Tape tape;
    *value = model->model.gradient(propto, jacobian, point, gradient);
  });
}

EXPORT int bs_log_density_hessian(const bs_model* model, bool propto, bool jacobian,
                                  const double* point, double* value, double* gradient,
                                  double* hessian, char** error) {
  return guarded("log_density_hessian", error, [&] {
    Tape tape;
    *value = model->model.hessian(propto, jacobian, point, gradient, hessian);
  });
}

EXPORT int bs_log_density_hessian_vector_product(const bs_model* model, bool propto, bool jacobian,
                                                 const double* point, const double* direction,
                                                 double* value, double* product, char** error) {
  return guarded("log_density_hessian_vector_product", error, [&] {
    Tape tape;
    *value = model->model.hessian_vector_product(propto, jacobian, point, direction, product);
  });
}
