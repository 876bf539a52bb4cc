functions {
  real gumbel_like_lpdf(vector y, real mu, real beta) {
    vector[rows(y)] z = (y - mu) / beta;
    return -rows(y) * log(beta) - sum(z + exp(-z));
  }
  real gumbel_like_rng(real mu, real beta) {
    return mu - beta * log(-log(uniform_rng(0, 1)));
  }
  real capped_lpmf(array[] int y, real rate) {
    real total = 0;
    for (v in y) total += v < 3 ? poisson_lpmf(v | rate) : poisson_lccdf(2 | rate);
    return total;
  }
  void add_prior_lp(real mu, real beta) {
    mu ~ normal(0, 3);
    beta ~ lognormal(0, 1);
  }
  real power(real x, int n);
  real power(real x, int n) {
    return n == 0 ? 1 : x * power(x, n - 1);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
  array[N] int<lower=0, upper=3> counts;
}
parameters {
  real mu;
  real<lower=0> beta;
  real<lower=0> rate;
}
model {
  add_prior_lp(mu, beta);
  y ~ gumbel_like(mu, beta);
  counts ~ capped(rate);
  target += -power(rate, 3);
}
generated quantities {
  array[N] real y_rep;
  for (n in 1 : N) y_rep[n] = gumbel_like_rng(mu, beta);
  real log_lik = gumbel_like_lpdf(y | mu, beta);
}
