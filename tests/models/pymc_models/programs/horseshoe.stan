data {
  int N, K;
  matrix[N, K] X;
  vector[N] y;
}
parameters {
  vector[K] z;
  vector<lower=0>[K] local;
  real<lower=0> overall, slab, sigma;
}
transformed parameters {
  vector[K] beta = overall * z .* local .* sqrt(slab / (slab + overall ^ 2 * local ^ 2));
}
model {
  z ~ normal(0, 1);
  local ~ student_t(1, 0, 1);
  overall ~ student_t(1, 0, 0.2);
  slab ~ inv_gamma(2, 8);
  sigma ~ exponential(1);
  y ~ normal(X * beta, sigma);
}
