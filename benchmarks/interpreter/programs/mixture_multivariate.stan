data {
  int<lower=1> K;
  int<lower=1> D;
  int<lower=0> N;
  array[N] vector[D] y;
}
parameters {
  simplex[K] weight;
  array[K] vector[D] mu;
  array[K] vector<lower=0>[D] scale;
  array[K] cholesky_factor_corr[D] L;
}
model {
  for (k in 1 : K) {
    mu[k] ~ normal(0, 3);
    scale[k] ~ gamma(2, 2);
    L[k] ~ lkj_corr_cholesky(3);
  }
  for (n in 1 : N) {
    array[K] real term;
    for (k in 1 : K) {
      term[k] = log(weight[k])
                + multi_normal_cholesky_lpdf(y[n] | mu[k], diag_pre_multiply(
                                                             scale[k], L[k]));
    }
    target += log_sum_exp(term);
  }
}
generated quantities {
  array[K] matrix[D, D] Sigma;
  for (k in 1 : K) {
    Sigma[k] = multiply_lower_tri_self_transpose(diag_pre_multiply(scale[k],
                                                                  L[k]));
  }
  vector[D] y_new = multi_normal_cholesky_rng(mu[1],
                                              diag_pre_multiply(scale[1], L[1]));
}
