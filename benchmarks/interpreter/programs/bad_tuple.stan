parameters {
  tuple(real, vector[2]) pair;
}
model {
  pair.1 ~ normal(0, 1);
  pair.2 ~ normal(pair.1, 1);
}
