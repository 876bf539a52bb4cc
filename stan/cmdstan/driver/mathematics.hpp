// As much of Stan's mathematics as the driver needs; before every other header of Stan's.
//
// Stan's services include all of it and call hardly any. A compiler reads it for 20 seconds, once a bundle, and then
// looks every call up among it. So the guards of its collections are defined here, which makes them empty, and what the
// services call is included by name. What is missing after an update of Stan's headers is an error of the compiler.
#pragma once

#define STAN_MATH_PRIM_CONSTRAINT_HPP
#define STAN_MATH_PRIM_FUN_HPP
#define STAN_MATH_PRIM_FUNCTOR_HPP
#define STAN_MATH_PRIM_PROB_HPP
#define STAN_MATH_REV_CONSTRAINT_HPP
#define STAN_MATH_REV_FUN_HPP
#define STAN_MATH_REV_FUNCTOR_HPP
#define STAN_MATH_REV_PROB_HPP

#include <stan/math/rev/core.hpp>
#include <stan/math/rev/fun/grad.hpp>
#include <stan/math/rev/functor/gradient.hpp>
#include <stan/math/rev/functor/finite_diff_hessian_auto.hpp>  // after the gradient, which it calls

#include <stan/math/prim/fun/autocorrelation.hpp>
#include <stan/math/prim/fun/expm1.hpp>
#include <stan/math/prim/fun/log_sum_exp.hpp>
#include <stan/math/prim/fun/mean.hpp>
#include <stan/math/prim/fun/to_matrix.hpp>
#include <stan/math/prim/fun/variance.hpp>
#include <stan/math/prim/fun/welford_covar_estimator.hpp>
#include <stan/math/prim/fun/welford_var_estimator.hpp>
#include <stan/math/prim/prob/normal_rng.hpp>
#include <stan/math/prim/prob/std_normal_rng.hpp>

// What services take from headers of those collections.
#include <boost/random/normal_distribution.hpp>
#include <boost/random/variate_generator.hpp>
#include <boost/range/iterator_range.hpp>
#include <tbb/parallel_for.h>

#include <iomanip>
