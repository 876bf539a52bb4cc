parameters {
  vector[3] mu;
}
model {
  int n = mu[1];
  mu ~ normal(n, 1);
}
