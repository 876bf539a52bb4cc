"""Training networks by minibatch Adam, alone and in ensembles."""
