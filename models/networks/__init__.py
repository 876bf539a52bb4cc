"""Networks: shapes, priors, likelihoods and parametrisations, with their NumPyro models."""
