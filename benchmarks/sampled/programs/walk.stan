// neighbours hold together: slow for few draws
data { int<lower=2> T; vector[T] y; }
parameters { vector[T] level; real<lower=0> step; real<lower=0> noise; }
model {
  step ~ normal(0, 1);
  noise ~ normal(0, 1);
  level[1] ~ normal(0, 5);
  level[2 : T] ~ normal(level[1 : T - 1], step);
  y ~ normal(level, noise);
}
