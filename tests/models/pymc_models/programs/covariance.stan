data {
  int N;
  array[N] vector[2] y;
}
parameters {
  cov_matrix[2] spread;
}
model {
  spread ~ wishart(4, [[1, 0.3], [0.3, 1]]);
  y ~ multi_normal([0, 0]', spread);
}
