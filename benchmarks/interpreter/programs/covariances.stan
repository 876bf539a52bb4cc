data {
  int<lower=2> K;
  array[K, K] int<lower=0> moves;
}
parameters {
  cholesky_factor_cov[K] L;
  corr_matrix[K] Omega;
  cov_matrix[K] Sigma;
  cholesky_factor_cov[K + 1, K] tall;
}
model {
  L * L' ~ wishart(K + 2, identity_matrix(K));
  for (k in 1 : K) target += (K - k + 1) * log(L[k, k]);
  Omega ~ lkj_corr(2);
  Sigma ~ inv_wishart(K + 1, add_diag(tcrossprod(to_matrix(moves) / 10.0), 1));
  to_vector(tall) ~ normal(0, 1);
}
generated quantities {
  matrix[K, K] precision = inverse(Sigma);
  real size_ = log_determinant(Sigma);
}
