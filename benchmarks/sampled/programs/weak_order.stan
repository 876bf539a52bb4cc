// only the first coordinate is ordered, and it hardly tells the components apart
data { int<lower=1> N; matrix[N, 2] y; }
parameters { simplex[2] share; ordered[2] first; vector[2] second; vector<lower=0>[2] spread; }
model {
  share ~ dirichlet([2, 2]');
  first ~ normal(0, 3);
  second ~ normal(0, 3);
  spread ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    vector[2] part = log(share);
    for (k in 1 : 2) part[k] += normal_lpdf(y[n, 1] | first[k], spread[k]) + normal_lpdf(y[n, 2] | second[k], spread[k]);
    target += log_sum_exp(part);
  }
}
