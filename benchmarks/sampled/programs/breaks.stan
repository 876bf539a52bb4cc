// two smooth breaks at times that are not ordered
data { int<lower=1> N; vector[N] t; vector[N] y; }
parameters { vector<lower=0, upper=60>[2] when; vector[2] jump; real level; real<lower=0> noise; }
model {
  jump ~ normal(0, 5);
  level ~ normal(0, 5);
  noise ~ normal(0, 1);
  y ~ normal(level + jump[1] * inv_logit(2 * (t - when[1])) + jump[2] * inv_logit(2 * (t - when[2])), noise);
}
