data {
  int<lower=1> N;
  matrix<lower=0, upper=1>[N, N] W;
  vector[N] y;
}
transformed data {
  vector[N] neighbours = W * rep_vector(1, N);
  matrix[N, N] D = diag_matrix(neighbours);
  int nonzero = num_elements(csr_extract_v(W));
  vector[size(csr_extract_w(W))] values = csr_extract_w(W);
  array[size(csr_extract_v(W))] int columns = csr_extract_v(W);
  array[N + 1] int starts = csr_extract_u(W);
}
parameters {
  real<lower=0> tau;
  real<lower=0, upper=1> alpha;
  vector[N] phi;
  real<lower=0> sigma;
}
model {
  tau ~ gamma(2, 2);
  phi ~ multi_normal_prec(rep_vector(0, N), tau * (D - alpha * W));
  sigma ~ normal(0, 1);
  y ~ normal(phi + 0.1 * csr_matrix_times_vector(N, N, values, columns, starts, phi),
             sigma);
}
generated quantities {
  real quadratic = tau * quad_form(D - alpha * W, phi);
  int links = nonzero;
}
