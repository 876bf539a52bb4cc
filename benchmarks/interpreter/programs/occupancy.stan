data {
  int<lower=1> sites;
  int<lower=1> visits;
  vector[sites] x;
  array[sites] int<lower=0, upper=visits> seen;
}
parameters {
  real a;
  real b;
  real detect;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  detect ~ logistic(0, 1);
  for (i in 1 : sites) {
    real eta = a + b * x[i];
    real present = log_inv_logit(eta)
                   + binomial_logit_lpmf(seen[i] | visits, detect);
    if (seen[i] > 0) {
      target += present;
    } else {
      target += log_sum_exp(present, log1m_inv_logit(eta));
    }
  }
}
generated quantities {
  array[sites] int occupied;
  for (i in 1 : sites) {
    if (seen[i] > 0) {
      occupied[i] = 1;
    } else {
      real psi = inv_logit(a + b * x[i]);
      real missed = psi * (1 - inv_logit(detect)) ^ visits;
      occupied[i] = bernoulli_rng(missed / (missed + 1 - psi));
    }
  }
}
