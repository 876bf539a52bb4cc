data {
  int<lower=1> N;
  array[N] int<lower=0> trials;
  array[N] int<lower=0> hits;
  array[5] real<lower=0, upper=1> levels;
}
parameters {
  real<lower=0, upper=1> mean_rate;
  real<lower=0.1> size_;
  vector<lower=0, upper=1>[N] rate;
}
model {
  mean_rate ~ beta(2, 2);
  size_ ~ pareto(0.1, 1.5);
  rate ~ beta_proportion(mean_rate, size_);
  hits ~ binomial(trials, rate);
  hits ~ beta_binomial(trials, mean_rate * size_, (1 - mean_rate) * size_);
}
generated quantities {
  array[5] real spread = quantile(rate, levels);
  array[N] int y_rep = binomial_rng(trials, rate);
  real tail = beta_lccdf(0.5 | mean_rate * size_, (1 - mean_rate) * size_);
  int above = 0;
  for (r in rate) above += r > mean_rate;
}
