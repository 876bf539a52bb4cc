data { int<lower=1> N; vector[N] t; vector[N] y; }
parameters { vector<lower=0>[2] height; vector<lower=0>[2] rate; real<lower=0> noise; }
model {
  height ~ lognormal(1, 1);
  rate ~ lognormal(-1, 1.5);
  noise ~ normal(0, 0.5);
  y ~ normal(height[1] * exp(-rate[1] * t) + height[2] * exp(-rate[2] * t), noise);
}
