data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zeros = rep_vector(0, N);
}
parameters {
  real<lower=0> length_scale;
  real<lower=0> amplitude;
  real<lower=0> sigma;
}
model {
  matrix[N, N] K = gp_exp_quad_cov(x, amplitude, length_scale);
  for (n in 1 : N) K[n, n] += square(sigma) + 1e-8;
  length_scale ~ inv_gamma(5, 5);
  amplitude ~ std_normal();
  sigma ~ std_normal();
  y ~ multi_normal_cholesky(zeros, cholesky_decompose(K));
}
generated quantities {
  vector[N] mean_f;
  {
    matrix[N, N] K = gp_exp_quad_cov(x, amplitude, length_scale);
    mean_f = K * mdivide_left_spd(add_diag(K, square(sigma) + 1e-8), y);
  }
}
