data {
  int<lower=0> N;
  array[N] int<lower=0> y;
}
parameters {
  real<lower=0, upper=1> theta;
  real<lower=0> lambda;
}
model {
  theta ~ beta(1, 1);
  lambda ~ exponential(0.2);
  for (n in 1 : N) {
    if (y[n] == 0) {
      target += log_sum_exp(bernoulli_lpmf(1 | theta),
                            bernoulli_lpmf(0 | theta) + poisson_lpmf(0 | lambda));
    } else {
      target += bernoulli_lpmf(0 | theta) + poisson_lpmf(y[n] | lambda);
    }
  }
}
generated quantities {
  array[N] int y_rep;
  for (n in 1 : N) y_rep[n] = bernoulli_rng(theta) ? 0 : poisson_rng(lambda);
}
