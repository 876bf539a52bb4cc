data { int<lower=1> N; vector[N] y; }
parameters { real mu1; real mu2; real<lower=0> sigma1; real<lower=0> sigma2; real<lower=0, upper=1> share; }
model {
  mu1 ~ normal(0, 5);
  mu2 ~ normal(0, 5);
  sigma1 ~ lognormal(0, 0.5);
  sigma2 ~ lognormal(0, 0.5);
  share ~ beta(2, 2);
  for (n in 1 : N) target += log_mix(share, normal_lpdf(y[n] | mu1, sigma1), normal_lpdf(y[n] | mu2, sigma2));
}
