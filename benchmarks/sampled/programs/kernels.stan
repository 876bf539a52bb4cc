// a sum of a slow function and a quick one
data { int<lower=1> N; array[N] real x; vector[N] y; }
parameters { vector<lower=0>[2] length; vector<lower=0>[2] height; real<lower=0> noise; }
model {
  matrix[N, N] cov = gp_exp_quad_cov(x, height[1], length[1]) + gp_exp_quad_cov(x, height[2], length[2]);
  length ~ lognormal(0, 1);
  height ~ normal(0, 2);
  noise ~ normal(0, 0.5);
  y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(add_diag(cov, square(noise) + 1e-8)));
}
