"""What a posterior holds beside its draws: data, log likelihoods, predictions, log priors."""
