// abilities integrated out at given nodes
data {
  int<lower=1> I; int<lower=1> J; array[I, J] int<lower=0, upper=1> y;
  int<lower=1> M; vector[M] node; vector[M] log_weight;
}
parameters { vector[I] slope; vector[I] easy; }
model {
  slope ~ normal(0, 2);
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
