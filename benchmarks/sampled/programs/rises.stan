// two phases of growth of equal height, as scalars
data { int<lower=1> N; vector[N] t; vector[N] y; }
parameters { real<lower=0> a; real<lower=0> b; real<lower=0> c; real<lower=0> d; real<lower=0> noise; }
model {
  a ~ normal(0, 0.5);
  c ~ normal(0, 0.5);
  b ~ normal(0, 20);
  d ~ normal(0, 20);
  noise ~ normal(0, 5);
  y ~ normal(40 * inv_logit(a * t - b) + 40 * inv_logit(c * t - d), noise);
}
