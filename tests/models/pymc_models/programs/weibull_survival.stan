data {
  int N, K;
  matrix[N, K] X;
  vector[N] y;
}
parameters {
  real<lower=0.2, upper=8> shape;
  vector[K] beta;
}
model {
  vector[N] scale = exp(X * beta);
  shape ~ normal(1, 2);
  beta ~ normal(0, 1);
  for (n in 1 : N) {
    if (y[n] < 2) {
      y[n] ~ weibull(shape, scale[n]);
    } else {
      target += weibull_lccdf(2 | shape, scale[n]);
    }
  }
}
