data { real mean; real<lower=0> few; real<lower=0> rate; }
parameters { real<lower=0> cut; real<lower=0, upper=1> p; vector<lower=0>[3] wait; }
model {
  cut ~ normal(mean, 1);
  p ~ beta(1, few);
  wait ~ exponential(rate);
}
