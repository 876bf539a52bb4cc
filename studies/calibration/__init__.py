"""Check that our methods and programs are right, as far as data simulated from the prior can tell.

The experiment is our own, after Talts et al. 2018 and Modrák et al. 2023. NUTS on both engines is held to data that
networks in four parametrisations, a mixture, an item response model and a hidden Markov model draw from their priors;
so are approximations of a network's posterior, which are wrong by what they leave out: by how much is the result.
"""

from .page import STUDY as STUDY
