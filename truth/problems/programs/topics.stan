/* Latent Dirichlet allocation, summed over the tokens' topics.
 * A word of document d is word v with probability theta[d] * phi[, v]: topics have no order, so that the
 * columns of theta move with the rows of phi.
 */
data {
  int<lower=1> num_topics;
  int<lower=1> num_docs;
  int<lower=1> num_words;
  matrix<lower=0>[num_docs, num_words] counts; // how often each word occurs in each document
  real<lower=0> alpha; // concentration of a document's topics
  real<lower=0> beta; // concentration of a topic's words
}
parameters {
  array[num_docs] simplex[num_topics] theta;
  array[num_topics] simplex[num_words] phi;
}
model {
  matrix[num_docs, num_topics] share;
  matrix[num_topics, num_words] vocabulary;
  for (d in 1 : num_docs) {
    theta[d] ~ dirichlet(rep_vector(alpha, num_topics));
    share[d] = theta[d]';
  }
  for (k in 1 : num_topics) {
    phi[k] ~ dirichlet(rep_vector(beta, num_words));
    vocabulary[k] = phi[k]';
  }
  target += sum(counts .* log(share * vocabulary));
}
