// One parameter of every constraint, and none that the data tell anything of: no live symmetry.
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real low;
  vector<lower=low>[3] above;
  ordered[3] cut;
  cholesky_factor_corr[3] L;
  corr_matrix[3] R;
  cov_matrix[3] S;
  unit_vector[3] direction;
  simplex[3] share;
  vector<offset=low, multiplier=2>[3] effect;
  array[2] matrix[3, 2] spread;
  real mean;
}
model {
  low ~ normal(0, 1);
  above ~ normal(0, 1);
  cut ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  R ~ lkj_corr(2);
  S ~ wishart(5, identity_matrix(3));
  share ~ dirichlet([1, 2, 3]');
  effect ~ normal(0, 1);
  for (i in 1 : 2) {
    to_vector(spread[i]) ~ normal(i, 1);
  }
  y ~ normal(mean + dot_product(direction, [1, 2, 3]'), 1);
}
