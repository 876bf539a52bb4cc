functions {
  vector flow(real t, vector y, array[] real theta, real N) {
    real infected = theta[1] * y[1] * y[2] / N;
    real recovered = theta[2] * y[2];
    return [-infected, infected - recovered, recovered]';
  }
}
data {
  int<lower=1> T;
  real<lower=0> N;
  array[T] real ts;
  array[T] int<lower=0> cases;
}
transformed data {
  vector[3] y0 = [N - 1, 1, 0]';
}
parameters {
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> inv_phi;
}
transformed parameters {
  array[T] vector[3] y = ode_bdf(flow, y0, 0, ts, {beta, gamma}, N);
  real phi = 1 / inv_phi;
}
model {
  beta ~ normal(2, 1);
  gamma ~ normal(0.4, 0.5);
  inv_phi ~ exponential(5);
  for (t in 1 : T) cases[t] ~ neg_binomial_2(abs(y[t, 2]) + 1e-6, phi);
}
generated quantities {
  real R0 = beta / gamma;
  array[T] int y_rep;
  for (t in 1 : T) y_rep[t] = neg_binomial_2_rng(abs(y[t, 2]) + 1e-6, phi);
}
