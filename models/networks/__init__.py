"""Networks: shapes, priors, likelihoods and parametrisations, and what they mean in NumPyro."""
