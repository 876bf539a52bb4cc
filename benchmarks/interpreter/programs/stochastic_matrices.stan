data {
  int<lower=2> K;
  array[K, K] int<lower=0> moves;
}
parameters {
  row_stochastic_matrix[K, K] P;
  column_stochastic_matrix[K, K] Q;
  cholesky_factor_cov[K] L;
  corr_matrix[K] Omega;
}
model {
  for (k in 1 : K) {
    P[k]' ~ dirichlet(rep_vector(1.5, K));
    moves[k] ~ multinomial(P[k]');
    Q[ : , k] ~ dirichlet(rep_vector(2, K));
  }
  L * L' ~ wishart(K + 2, identity_matrix(K));
  for (k in 1 : K) target += (K - k + 1) * log(L[k, k]);
  Omega ~ lkj_corr(2);
}
generated quantities {
  vector[K] stationary;
  {
    matrix[K, K] power = matrix_power(P, 16);
    stationary = power[1]';
  }
}
