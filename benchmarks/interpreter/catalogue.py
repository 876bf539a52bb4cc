"""Programs of the folder `programs`, each with the function that makes its data."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from . import data as d

SEED = 20_261


def data_of(name: str) -> d.Data:
    """Return the data of a program.

    Parameters
    ----------
    name : str
        File name in `programs`, without the suffix.

    Returns
    -------
    dict
        Variables of the data block. Each program uses different random numbers.
    """
    generator = np.random.default_rng([SEED, crc32(name.encode())])
    return {key: d.plain(value) for key, value in MAKERS[name](generator).items()}


MAKERS: dict[str, d.Maker] = {
    "schools_centred": d.schools,
    "schools_noncentred": d.schools,
    "linear_regression": d.linear,
    "logistic": d.logistic,
    "poisson_offset": d.poisson_offset,
    "negative_binomial": d.negative_binomial,
    "ordered_logistic": d.graded,
    "categorical_logit": d.classes,
    "robust_regression": d.simple,
    "horseshoe": lambda g: d.linear(g, 20, 6) | {"scale": 0.5},
    "varying_slopes": d.slopes,
    "irt_1pl": d.irt_long,
    "irt_2pl": d.irt_wide,
    "mixture": d.mixture,
    "mixture_multivariate": d.mixture_multivariate,
    "lda": d.lda,
    "dawid_skene": d.raters,
    "hmm_forward": d.hmm,
    "hmm_marginal": d.hmm_counts,
    "gaussian_process": d.process,
    "gaussian_process_latent": d.process_counts,
    "gaussian_process_hilbert": d.hilbert,
    "autoregression": d.autoregression,
    "garch": d.returns,
    "stochastic_volatility": d.volatility,
    "local_level": d.walk,
    "changepoint": d.changes,
    "survival_weibull": d.survival,
    "zero_inflated": d.zeros,
    "hurdle": d.hurdle,
    "cormack_jolly_seber": d.captures,
    "occupancy": d.occupancy,
    "lotka_volterra": d.predators,
    "sir": d.epidemic,
    "missing_normal": d.missing,
    "multivariate_probit": d.probit,
    "factor_analysis": d.factors,
    "icar": d.districts,
    "car_sparse": d.car,
    "dirichlet_multinomial": d.shares,
    "multinomial_softmax": d.softmax,
    "bradley_terry": d.matches,
    "sum_to_zero": d.table,
    "reduce_sum": d.counts,
    "truncated": d.truncated,
    "von_mises": d.angles,
    "own_distribution": d.own,
    "data_rng": d.projected,
    "matrix_arrays": d.matrices,
    "change_of_variables": d.positive,
    "zero_sizes": d.nothing,
    "control_flow": d.normal,
    "profiles": d.simple,
    "complex_numbers": d.signal,
    "algebra_solver": d.prices,
    "integral": d.positive,
    "stochastic_matrices": d.moves,
    "covariances": d.moves,
    "keyword_names": d.normal,
    "linear_algebra": d.moves,
    "generalised_linear": d.generalised,
    "random_effects_crossed": d.crossed,
    "beta_binomial_quantiles": d.hits,
    "bad_tuple": d.none,
    "bad_syntax": d.none,
    "bad_distribution": d.none,
    "bad_type": d.none,
    "bad_data_missing": lambda g: {"N": 3},
    "bad_data_shape": lambda g: {"N": 3, "y": [0.1, 0.2]},
    "bad_data_bound": lambda g: {"N": 2, "y": [0.1, -0.2]},
    "bad_fatal_error": lambda g: {"N": 2},
    "bad_fatal_in_model": d.none,
    "bad_index": lambda g: {"K": 5, "y": [0.1, 0.2, 0.3]},
}
"""Functions that make the data, by program."""
