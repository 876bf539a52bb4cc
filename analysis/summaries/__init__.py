"""Reading posteriors: draws, parameters, what the sampler recorded, variational fits."""
