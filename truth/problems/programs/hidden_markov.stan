/* A hidden Markov model with normal emissions, summed over the paths.
 * States have no order: rows and columns of the transition matrix move together, with means, standard deviations
 * and the first state's probabilities.
 */
data {
  int<lower=1> num_states;
  int<lower=1> num_obs;
  vector[num_obs] y;
}
parameters {
  simplex[num_states] start;
  array[num_states] simplex[num_states] A; // A[i, j]: from i to j
  vector[num_states] mu;
  vector<lower=0>[num_states] sigma;
}
model {
  matrix[num_states, num_states] transition;
  matrix[num_states, num_obs] log_emission;
  start ~ dirichlet(rep_vector(1, num_states));
  for (i in 1 : num_states) {
    A[i] ~ dirichlet(rep_vector(1, num_states));
    transition[i] = A[i]';
    for (n in 1 : num_obs) {
      log_emission[i, n] = normal_lpdf(y[n] | mu[i], sigma[i]);
    }
  }
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  target += hmm_marginal(log_emission, transition, start);
}
