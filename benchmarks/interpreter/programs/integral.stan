functions {
  real integrand(real x, real xc, array[] real theta, data array[] real x_r,
                 data array[] int x_i) {
    return exp(-theta[1] * x) * sqrt(1 + theta[2] * x);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  array[0] real x_r;
  array[0] int x_i;
}
parameters {
  real<lower=0> a;
  real<lower=0> b;
}
model {
  a ~ gamma(3, 2);
  b ~ gamma(3, 2);
  y ~ exponential(integrate_1d(integrand, 0, 3, {a, b}, x_r, x_i, 1e-8));
}
generated quantities {
  real whole = integrate_1d(integrand, 0, positive_infinity(), {a, b}, x_r, x_i);
}
