data {
  int<lower=1> N;
  array[N] real x;
  array[N] int<lower=0> y;
}
parameters {
  real<lower=0> length_scale;
  real<lower=0> amplitude;
  vector[N] z;
}
transformed parameters {
  vector[N] f;
  {
    matrix[N, N] K = gp_matern32_cov(x, amplitude, length_scale);
    f = cholesky_decompose(add_diag(K, 1e-6)) * z;
  }
}
model {
  length_scale ~ lognormal(0, 0.5);
  amplitude ~ normal(0, 1);
  z ~ std_normal();
  y ~ poisson_log(f);
}
generated quantities {
  vector[N] log_lik;
  for (n in 1 : N) log_lik[n] = poisson_log_lpmf(y[n] | f[n]);
}
