data {
  int N, K, O;
  matrix[N, K] X;  // rows with an outcome first
  vector[O] y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> sigma;
  vector[N - O] y_unobserved;
}
model {
  alpha ~ student_t(3, 0, 2);
  beta ~ normal(0, 2);
  sigma ~ cauchy(0, 1.5);
  append_row(y, y_unobserved) ~ normal(alpha + X * beta, sigma);
}
