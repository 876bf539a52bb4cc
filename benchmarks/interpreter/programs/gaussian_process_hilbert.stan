functions {
  vector spectral_root(real amplitude, real length_scale, vector frequency) {
    return amplitude * sqrt(sqrt(2 * pi()) * length_scale)
           * exp(-0.25 * square(length_scale * frequency));
  }
  matrix basis(vector x, real half_width, int M) {
    int N = rows(x);
    matrix[N, M] phi;
    for (m in 1 : M) {
      phi[ : , m] = sin(m * pi() / (2 * half_width) * (x + half_width))
                    / sqrt(half_width);
    }
    return phi;
  }
}
data {
  int<lower=1> N;
  int<lower=1> M;
  real<lower=0> half_width;
  vector[N] x;
  vector[N] y;
}
transformed data {
  matrix[N, M] phi = basis(x, half_width, M);
  vector[M] frequency = linspaced_vector(M, 1, M) * pi() / (2 * half_width);
}
parameters {
  real intercept;
  vector[M] z;
  real<lower=0> amplitude;
  real<lower=0> length_scale;
  real<lower=0> sigma;
}
model {
  vector[M] slope = spectral_root(amplitude, length_scale, frequency) .* z;
  intercept ~ normal(0, 1);
  z ~ std_normal();
  amplitude ~ normal(0, 1);
  length_scale ~ lognormal(-0.5, 0.5);
  sigma ~ exponential(2);
  y ~ normal_id_glm(phi, intercept, slope, sigma);
}
generated quantities {
  vector[N] f = intercept
                + phi * (spectral_root(amplitude, length_scale, frequency) .* z);
}
