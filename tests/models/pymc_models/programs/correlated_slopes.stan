data {
  int N, J;
  vector[N] x, y;
  array[N] int group;
}
parameters {
  vector[2] mu;
  vector[3] packed;  // rows of the Cholesky factor, its diagonal as logarithms
  matrix[J, 2] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[2, 2] factor = [[exp(packed[1]), 0], [packed[2], exp(packed[3])]];
}
model {
  vector[2] sd = [factor[1, 1], sqrt(dot_self(factor[2]))]';
  matrix[J, 2] effect = rep_matrix(mu', J) + z * factor';
  mu ~ normal(0, 2);
  sd ~ exponential(1);
  diag_pre_multiply(inv(sd), factor) ~ lkj_corr_cholesky(2);
  target += packed[1] + 2 * packed[3] - 2 * log(sd[2]);  // Jacobian
  to_vector(z) ~ normal(0, 1);
  sigma ~ normal(0, 1);
  y ~ normal(effect[group, 1] + effect[group, 2] .* x, sigma);
}
