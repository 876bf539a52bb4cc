data {
  int<lower=0> N;
  int<lower=1> G;
  array[N] int<lower=1, upper=G> group;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  vector<offset=1, multiplier=0.5>[G] a;
  real b;
  real<lower=0> inv_phi;
}
transformed parameters {
  real phi = inv(square(inv_phi) + 1e-3);
}
model {
  a ~ normal(1, 0.5);
  b ~ normal(0, 1);
  inv_phi ~ normal(0, 1);
  y ~ neg_binomial_2_log(a[group] + b * x, phi);
}
generated quantities {
  array[N] int y_rep = neg_binomial_2_log_rng(a[group] + b * x, phi);
  vector[N] log_lik;
  for (n in 1 : N) {
    log_lik[n] = neg_binomial_2_log_lpmf(y[n] | a[group[n]] + b * x[n], phi);
  }
}
