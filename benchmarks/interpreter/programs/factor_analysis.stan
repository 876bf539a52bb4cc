data {
  int<lower=1> P;
  int<lower=1> K;
  int<lower=1> N;
  matrix[N, P] y;
}
parameters {
  matrix[P, K] loading;
  vector<lower=0>[P] sigma;
  cholesky_factor_corr[K] L;
}
transformed parameters {
  cov_matrix[P] Sigma = add_diag(multiply_lower_tri_self_transpose(
                                   cholesky_decompose(tcrossprod(loading * L)
                                                      + diag_matrix(rep_vector(1e-3, P)))),
                                 square(sigma));
}
model {
  to_vector(loading) ~ normal(0, 1);
  sigma ~ gamma(2, 2);
  L ~ lkj_corr_cholesky(2);
  for (n in 1 : N) y[n] ~ multi_normal(rep_vector(0, P), Sigma);
}
generated quantities {
  matrix[P, P] precision = inverse_spd(Sigma);
  vector[P] roots = eigenvalues_sym(Sigma);
}
