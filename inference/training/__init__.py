"""Training of networks with minibatch Adam, in ensembles or one at a time."""
