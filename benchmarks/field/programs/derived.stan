data { int<lower=1> N; vector[N] y; }
parameters { vector[2] mu; vector<lower=0>[2] sigma; simplex[2] w; }
model {
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.3);
  w ~ dirichlet(rep_vector(4, 2));
  for (n in 1 : N)
    target += log_mix(w[1], normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
}
generated quantities { vector[2] square = sigma .* sigma; vector[2] prec = 1.0 ./ square; }
