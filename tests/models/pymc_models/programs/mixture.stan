data {
  int N;
  vector[N] y;
}
parameters {
  ordered[2] mu;
  vector<lower=0>[2] sigma;
  simplex[2] share;
}
model {
  mu ~ normal(0, 3);
  sigma ~ normal(0, 1);
  share ~ dirichlet([2, 3]');
  for (n in 1 : N) {
    target += log_sum_exp(log(share[1]) + normal_lpdf(y[n] | mu[1], sigma[1]),
                          log(share[2]) + normal_lpdf(y[n] | mu[2], sigma[2]));
  }
}
