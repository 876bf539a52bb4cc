data {
  int<lower=0> N;
  int<lower=1> G;
  int<lower=1> K;
  array[N] int<lower=1, upper=G> group;
  matrix[N, K] X;
  vector[N] y;
}
parameters {
  vector[K] centre;
  vector<lower=0>[K] tau;
  cholesky_factor_corr[K] L;
  matrix[K, G] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[G, K] slope = rep_matrix(centre', G) + (diag_pre_multiply(tau, L) * z)';
}
model {
  centre ~ normal(0, 2);
  tau ~ exponential(1);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ exponential(1);
  y ~ normal(rows_dot_product(X, slope[group]), sigma);
}
generated quantities {
  corr_matrix[K] Omega = multiply_lower_tri_self_transpose(L);
  array[N] real y_rep = normal_rng(rows_dot_product(X, slope[group]), sigma);
}
