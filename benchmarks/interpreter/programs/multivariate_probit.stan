data {
  int<lower=1> D;
  int<lower=0> N;
  array[N, D] int<lower=0, upper=1> y;
  vector[N] x;
}
parameters {
  vector[D] a;
  vector[D] b;
  cholesky_factor_corr[D] L;
  array[N, D] real<lower=0, upper=1> u;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  L ~ lkj_corr_cholesky(4);
  for (n in 1 : N) {
    vector[D] mu = a + b * x[n];
    vector[D] z;
    real before = 0;
    for (d in 1 : D) {
      real bound = Phi(-(mu[d] + before) / L[d, d]);
      real t;
      if (y[n, d] == 1) {
        t = bound + (1 - bound) * u[n, d];
        target += log1m(bound);
      } else {
        t = bound * u[n, d];
        target += log(bound);
      }
      z[d] = inv_Phi(t);
      if (d < D) before = L[d + 1, 1 : d] * head(z, d);
    }
  }
}
generated quantities {
  corr_matrix[D] Omega = multiply_lower_tri_self_transpose(L);
}
