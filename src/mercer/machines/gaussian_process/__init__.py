"""Gaussian processes.

regression, classification     `GaussianProcessRegressor`, `GaussianProcessClassifier`
targets                        targets in units
evidence, loo                  what is maximised, with its gradient
starts, search, tune, refine   where a search begins, on which rows, and how it climbs, far and near
moves                          the numbers that it moves, their units and limits
conditioning, inverses         α and (K + N)⁻¹ at given hyperparameters
posterior, views, features     the posterior as a value, and everything that is asked of it
certificate                    what the fit says of itself
laplace, whitened, averages    classes: the mode, coordinates for high priors, averaged probabilities
compact                        without n × n factors, for model files
smoother                       the mean without each row, and with one more
"""
