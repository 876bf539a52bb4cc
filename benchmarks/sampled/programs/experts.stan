// lines that a softmax of lines chooses among
data { int<lower=1> N; int<lower=1> K; vector[N] x; vector[N] y; }
parameters { matrix[2, K] gate; matrix[2, K] line; vector<lower=0>[K] noise; }
model {
  to_vector(gate) ~ normal(0, 3);
  to_vector(line) ~ normal(0, 3);
  noise ~ lognormal(-1, 1);
  for (n in 1 : N) {
    vector[K] part = log_softmax((gate[1] + x[n] * gate[2])');
    for (k in 1 : K) part[k] += normal_lpdf(y[n] | line[1, k] + line[2, k] * x[n], noise[k]);
    target += log_sum_exp(part);
  }
}
