data {
  int<lower=1> N;
  complex_vector[N] signal;
}
transformed data {
  complex_vector[N] spectrum = fft(signal);
}
parameters {
  complex z;
  complex_vector[2] w;
  real<lower=0> sigma;
}
transformed parameters {
  complex product = z * w[1] + conj(w[2]);
  vector[N] fitted;
  for (n in 1 : N) fitted[n] = get_real(exp(to_complex(-0.1, 0.3) * n) * product);
}
model {
  abs(z) ~ gamma(2, 1);
  get_real(w) ~ normal(0, 1);
  get_imag(w) ~ normal(0, 1);
  sigma ~ exponential(1);
  get_real(signal) ~ normal(fitted, sigma);
}
generated quantities {
  real angle = arg(z);
  complex_vector[N] turned = spectrum * product;
}
