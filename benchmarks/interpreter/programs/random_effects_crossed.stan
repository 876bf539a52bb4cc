data {
  int<lower=1> N;
  int<lower=1> S;
  int<lower=1> I;
  array[N] int<lower=1, upper=S> subject;
  array[N] int<lower=1, upper=I> item;
  vector[N] rt;
}
parameters {
  real mu;
  vector[S] s;
  vector[I] w;
  vector<lower=0>[3] sd_;
  real<lower=0, upper=min(rt)> shift;
}
model {
  mu ~ normal(0, 2);
  sd_ ~ exponential(1);
  s ~ normal(0, sd_[1]);
  w ~ normal(0, sd_[2]);
  rt - shift ~ lognormal(mu + s[subject] + w[item], sd_[3]);
}
generated quantities {
  vector[N] log_lik;
  for (n in 1 : N) {
    log_lik[n] = lognormal_lpdf(rt[n] - shift | mu + s[subject[n]] + w[item[n]],
                                sd_[3]);
  }
  array[N] real y_rep = lognormal_rng(mu + s[subject] + w[item], sd_[3]);
}
