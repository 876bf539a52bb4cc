data { int<lower=1> N; int<lower=1> P; matrix[N, P] X; vector[N] y; }
parameters { real alpha; vector[P] beta; real<lower=0> sigma; }
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  sigma ~ exponential(1);
  y ~ normal(alpha + X * beta, sigma);
}
