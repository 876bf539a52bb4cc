// two lines; the share of the first on the logit scale
data { int<lower=1> N; vector[N] x; vector[N] y; }
parameters { vector[2] a; vector[2] b; vector<lower=0>[2] s; real eta; }
model {
  a ~ normal(0, 3);
  b ~ normal(0, 2);
  s ~ lognormal(-0.5, 0.7);
  eta ~ normal(0, 1.5);
  for (n in 1 : N)
    target += log_mix(inv_logit(eta), normal_lpdf(y[n] | a[1] + b[1] * x[n], s[1]), normal_lpdf(y[n] | a[2] + b[2] * x[n], s[2]));
}
