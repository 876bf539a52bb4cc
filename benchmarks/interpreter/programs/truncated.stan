data {
  int<lower=0> N;
  real<lower=0> low;
  vector<lower=low>[N] y;
  vector[N] z;
  array[N] int<lower=1> counts;
}
parameters {
  real mu;
  real<lower=0> sigma;
  real<lower=0> lambda;
  real<lower=-1, upper=2> bounded;
}
model {
  sigma ~ normal(0, 2) T[0, ];
  bounded ~ normal(0, 1) T[-1, 2];
  lambda ~ gamma(2, 1);
  for (n in 1 : N) {
    y[n] ~ normal(mu, sigma) T[low, ];
    z[n] ~ student_t(5, mu, sigma) T[ , 10];
    counts[n] ~ neg_binomial_2(lambda, 2) T[1, 60];
  }
}
generated quantities {
  real y_new;
  {
    real below = normal_cdf(low | mu, sigma);
    y_new = mu + sigma * inv_Phi(uniform_rng(fmin(below, 0.999), 1));
  }
}
