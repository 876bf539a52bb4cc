data {
  int N;
  array[N] real x;
  vector[N] y;
}
parameters {
  real<lower=0> length, scale, noise;
}
model {
  length ~ inv_gamma(5, 5);
  scale ~ normal(0, 1);
  noise ~ normal(0, 0.5);
  y ~ multi_normal(rep_vector(0, N), add_diag(gp_exp_quad_cov(x, scale, length), noise ^ 2));
}
