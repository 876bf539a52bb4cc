// Curves of several groups, around a curve of their own: two Gaussian processes, summed out.
data {
  int<lower=1> G;
  int<lower=1> N;
  array[N] real x;
  array[G] vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  vector[N] z;
  real<lower=0> shared_scale;
  real<lower=0> group_scale;
  real<lower=0> sigma;
}
transformed parameters {
  vector[N] shared = cholesky_decompose(add_diag(gp_exp_quad_cov(x, shared_scale, 1), 1e-9)) * z;
}
model {
  matrix[N, N] L = cholesky_decompose(
    add_diag(gp_exp_quad_cov(x, group_scale, 1), square(sigma)));
  z ~ std_normal();
  shared_scale ~ lognormal(0, 1);
  group_scale ~ lognormal(0, 1);
  sigma ~ lognormal(-1, 1);
  y ~ multi_normal_cholesky(shared, L);
}
