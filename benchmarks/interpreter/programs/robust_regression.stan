data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
  real<lower=1> nu;
}
model {
  a ~ normal(0, 5);
  b ~ normal(0, 5);
  sigma ~ normal(0, 2);
  nu ~ gamma(2, 0.1);
  y ~ student_t(nu, a + b * x, sigma);
}
generated quantities {
  array[N] real y_rep = student_t_rng(nu, a + b * x, sigma);
  vector[N] log_lik;
  for (n in 1 : N) log_lik[n] = student_t_lpdf(y[n] | nu, a + b * x[n], sigma);
}
