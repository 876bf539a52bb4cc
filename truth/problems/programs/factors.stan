/* Factor analysis with sparse loadings, the factors summed out.
 * A row of y is normal with covariance L L' + diag(psi^2). The likelihood does not change under any rotation of
 * the factors; the Laplace prior on single loadings does, and leaves permutations and signs of the factors.
 */
data {
  int<lower=1> num_factors;
  int<lower=1> num_items;
  int<lower=num_items> num_obs;
  cov_matrix[num_items] scatter; // y' y, of centred y
  real<lower=0> loading_scale;
}
parameters {
  matrix[num_items, num_factors] L;
  vector<lower=0>[num_items] psi;
}
model {
  to_vector(L) ~ double_exponential(0, loading_scale);
  psi ~ lognormal(-0.5, 0.5);
  scatter ~ wishart(num_obs, add_diag(tcrossprod(L), square(psi)));
}
