data {
  int<lower=2> K;
  array[K, K] int<lower=0> moves;
}
transformed data {
  matrix[K, K] A = to_matrix(moves) / 10.0;
}
parameters {
  matrix[K, K] M;
}
model {
  to_vector(M) ~ std_normal();
  target += -0.1 * trace(M * M') - 0.01 * sum(square(matrix_exp(0.1 * M)))
            - 0.01 * sum(square(matrix_power(M, 3)));
}
generated quantities {
  vector[K] singular = singular_values(M);
  matrix[K, K] product = A \ M;
}
