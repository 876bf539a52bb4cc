/* Latent classes: a person of class k answers item i with yes with probability q[k, i], summed over the classes.
 * Classes have no order: their shares move together with the rows of q.
 */
data {
  int<lower=1> K;
  int<lower=1> J; // persons
  int<lower=1> I; // items
  array[J, I] int<lower=0, upper=1> y;
}
parameters {
  simplex[K] share;
  matrix<lower=0, upper=1>[K, I] q;
}
model {
  matrix[J, I] yes = to_matrix(y);
  matrix[J, K] part = yes * log(q)' + (1 - yes) * log1m(q)';
  row_vector[K] log_share = log(share)';
  share ~ dirichlet(rep_vector(2, K));
  to_vector(q) ~ beta(2, 2);
  for (j in 1 : J) {
    target += log_sum_exp(log_share + part[j]);
  }
}
