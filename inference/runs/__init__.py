"""Groups that a posterior holds next to its draws: data, log likelihoods, predictions, log priors."""
