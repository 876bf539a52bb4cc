// abilities integrated out at given nodes, and the first slope positive
data {
  int<lower=1> I; int<lower=1> J; array[I, J] int<lower=0, upper=1> y;
  int<lower=1> M; vector[M] node; vector[M] log_weight;
}
parameters { real<lower=0> first; vector[I - 1] rest; vector[I] easy; }
transformed parameters { vector[I] slope = append_row(first, rest); }
model {
  first ~ normal(0, 2);
  rest ~ normal(0, 2);
  easy ~ normal(0, 2);
  for (j in 1 : J) {
    vector[M] part = log_weight;
    for (i in 1 : I) {
      vector[M] eta = slope[i] * node + easy[i];
      part += y[i, j] ? log_inv_logit(eta) : log1m_inv_logit(eta);
    }
    target += log_sum_exp(part);
  }
}
