"""Gaussian processes.

regression, classification     `GaussianProcessRegressor`, `GaussianProcessClassifier`
targets                        targets in units
evidence, loo                  what is maximised, with its gradient
starts, search, tune           where a search begins, on which rows, and how it climbs
posterior, inverses            f given the data, as a value; (K + noise)⁻¹ by a factor, by steps or in features
views, features                bands, terms, samples and gradients, read from the posterior
certificate                    what the fit says of itself
laplace, whitened, averages    classes: the mode, coordinates for high priors, averaged probabilities
"""
