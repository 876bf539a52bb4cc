data {
  int<lower=1> A;
  int<lower=1> B;
  int<lower=1> R;
  int<lower=1> C;
  array[A, B] matrix[R, C] Y;
  array[A] row_vector[C] shift;
}
transformed data {
  array[B] matrix[R, C] centre = rep_array(rep_matrix(0, R, C), B);
  for (b in 1 : B) {
    for (a in 1 : A) centre[b] += Y[a, b] / A;
  }
}
parameters {
  array[A, B] matrix[R, C] M;
  array[B] row_vector<lower=0>[C] scale;
  array[2, 2] ordered[2] pairs;
}
model {
  for (a in 1 : A) {
    for (b in 1 : B) {
      to_vector(M[a, b]) ~ std_normal();
      for (r in 1 : R) Y[a, b][r] ~ normal(M[a, b, r] + shift[a], scale[b]);
    }
  }
  for (b in 1 : B) scale[b] ~ gamma(2, 1);
  for (i in 1 : 2) for (j in 1 : 2) pairs[i, j] ~ normal(i, j);
  target += -0.1 * sum(M[1, 1] .* centre[1]);
}
generated quantities {
  array[B, A] matrix[C, R] turned;
  for (b in 1 : B) for (a in 1 : A) turned[b, a] = M[a, b]';
  matrix[R * C, A] wide;
  for (a in 1 : A) wide[ : , a] = to_vector(M[a, 1]);
}
