// A Gaussian: its mean, its covariance and its log density are known.
data {
  int<lower=1> D;
  vector[D] mu;
  cov_matrix[D] Sigma;
}
parameters {
  vector[D] x;
}
model {
  profile("density") {
    x ~ multi_normal(mu, Sigma);
  }
}
