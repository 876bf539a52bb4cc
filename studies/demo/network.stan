// One hidden layer of tanh units; the prior of every weight and bias is standard normal.
data {
  int<lower=1> N;
  int<lower=1> H;
  matrix[N, 1] x;
  vector[N] y;
}
parameters {
  matrix[1, H] W1;
  vector[H] b1;
  matrix[H, 1] W2;
  vector[1] b2;
  real<lower=0> sigma;
}
model {
  to_vector(W1) ~ std_normal();
  b1 ~ std_normal();
  to_vector(W2) ~ std_normal();
  b2 ~ std_normal();
  sigma ~ std_normal();
  y ~ normal(tanh(x * W1 + rep_matrix(b1', N)) * to_vector(W2) + b2[1], sigma);
}
