/* A mixture of normals whose components have no order.
 * Every component's weight, mean and standard deviation move together; the priors treat all alike.
 */
data {
  int<lower=1> num_components;
  int<lower=0> num_obs;
  vector[num_obs] y;
}
parameters {
  simplex[num_components] weight;
  vector[num_components] mu;
  vector<lower=0>[num_components] sigma;
}
model {
  vector[num_components] log_weight = log(weight);
  weight ~ dirichlet(rep_vector(2, num_components));
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : num_obs) {
    vector[num_components] part;
    for (k in 1 : num_components) {
      part[k] = log_weight[k] + normal_lpdf(y[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(part);
  }
}
