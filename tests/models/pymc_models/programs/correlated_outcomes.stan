data {
  int N;
  array[N] vector[3] y;
}
parameters {
  vector[3] mu;
  vector<lower=0>[3] scale;
  cholesky_factor_corr[3] factor;
}
model {
  mu ~ normal(0, 2);
  scale ~ normal(0, 2);
  factor ~ lkj_corr_cholesky(2);
  y ~ multi_normal_cholesky(mu, diag_pre_multiply(scale, factor));
}
