data {
  int<lower=0> N;
  vector<lower=-pi(), upper=pi()>[N] angle;
}
parameters {
  unit_vector[2] direction;
  real<lower=0> kappa;
}
transformed parameters {
  real mu = atan2(direction[2], direction[1]);
}
model {
  kappa ~ gamma(2, 0.5);
  angle ~ von_mises(mu, kappa);
}
generated quantities {
  array[N] real y_rep;
  for (n in 1 : N) y_rep[n] = von_mises_rng(mu, kappa);
}
