data {
  int<lower=1> D;
  int<lower=1> N;
  int<lower=0> N_missing;
  array[N, D] real y;
  array[N_missing, 2] int where;
}
parameters {
  vector[D] mu;
  cov_matrix[D] Sigma;
  vector[N_missing] missing;
}
transformed parameters {
  array[N] vector[D] whole;
  for (n in 1 : N) whole[n] = to_vector(y[n]);
  for (i in 1 : N_missing) whole[where[i, 1], where[i, 2]] = missing[i];
}
model {
  mu ~ normal(0, 3);
  Sigma ~ inv_wishart(D + 2, identity_matrix(D));
  whole ~ multi_normal(mu, Sigma);
}
generated quantities {
  vector[D] y_new = multi_normal_rng(mu, Sigma);
  real log_det = log_determinant_spd(Sigma);
}
