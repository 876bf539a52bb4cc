functions {
  vector rate(real t, vector u, real alpha, real beta, real gamma, real delta) {
    vector[2] du;
    du[1] = (alpha - beta * u[2]) * u[1];
    du[2] = (delta * u[1] - gamma) * u[2];
    return du;
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> ts;
  vector<lower=0>[2] first;
  array[N] vector<lower=0>[2] y;
}
parameters {
  real<lower=0> alpha;
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> delta;
  vector<lower=0>[2] start;
  vector<lower=0>[2] sigma;
}
transformed parameters {
  array[N] vector[2] u = ode_rk45_tol(rate, start, 0, ts, 1e-8, 1e-8, 20000,
                                      alpha, beta, gamma, delta);
}
model {
  {alpha, gamma} ~ normal(1, 0.5);
  {beta, delta} ~ normal(0.5, 0.25);
  sigma ~ lognormal(-1, 1);
  start ~ lognormal(log(1), 1);
  first ~ lognormal(log(start), sigma);
  for (n in 1 : N) y[n] ~ lognormal(log(abs(u[n]) + 1e-12), sigma);
}
generated quantities {
  array[N, 2] real y_rep;
  for (n in 1 : N) y_rep[n] = lognormal_rng(log(abs(u[n]) + 1e-12), sigma);
}
