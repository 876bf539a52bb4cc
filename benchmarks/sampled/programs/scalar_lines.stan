// names as formula interfaces write them: scalars for the components, and a simplex
data { int<lower=1> N; vector[N] x; vector[N] y; }
parameters {
  real Intercept_mu1; real Intercept_mu2; vector[1] b_mu1; vector[1] b_mu2;
  real<lower=0> sigma1; real<lower=0> sigma2; simplex[2] theta;
}
model {
  Intercept_mu1 ~ normal(0, 3);
  Intercept_mu2 ~ normal(0, 3);
  b_mu1 ~ normal(0, 2);
  b_mu2 ~ normal(0, 2);
  sigma1 ~ lognormal(-0.5, 0.7);
  sigma2 ~ lognormal(-0.5, 0.7);
  theta ~ dirichlet([2, 2]');
  for (n in 1 : N)
    target += log_mix(theta[1], normal_lpdf(y[n] | Intercept_mu1 + b_mu1[1] * x[n], sigma1), normal_lpdf(y[n] | Intercept_mu2 + b_mu2[1] * x[n], sigma2));
}
