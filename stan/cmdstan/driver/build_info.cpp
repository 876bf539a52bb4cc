// Compiled anew for each set of flags (it takes a moment), so that flags which change the model
// alone need no second driver.
#include "build_info.hpp"

#include <stan/version.hpp>

namespace onebasin {
namespace {

std::string setting(const char* name, bool on) {
  return std::string(name) + (on ? "=true\n" : "=false\n");
}

#ifdef STAN_THREADS
constexpr bool threads = true;
#else
constexpr bool threads = false;
#endif
#ifdef STAN_NO_RANGE_CHECKS
constexpr bool no_range_checks = true;
#else
constexpr bool no_range_checks = false;
#endif
#ifdef STAN_CPP_OPTIMS
constexpr bool cpp_optims = true;
#else
constexpr bool cpp_optims = false;
#endif

}  // namespace

std::string build_info() {
  return "stan_version_major = " + stan::MAJOR_VERSION + "\nstan_version_minor = "
         + stan::MINOR_VERSION + "\nstan_version_patch = " + stan::PATCH_VERSION + "\n"
         + setting("STAN_THREADS", threads) + setting("STAN_MPI", false)
         + setting("STAN_OPENCL", false) + setting("STAN_NO_RANGE_CHECKS", no_range_checks)
         + setting("STAN_CPP_OPTIMS", cpp_optims);
}

}  // namespace onebasin
