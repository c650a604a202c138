"""Least squares with a penalty on the length of f.

ridge, ridge_cv, least_squares   `KernelRidge`, `KernelRidgeCV`, `KernelLeastSquares`
machine                          what they share: check, solve, keep, predict, leave one out
problem, dual, parts             the linear system, the methods that solve it, weights and intercepts
far                              ridge in features, with sums that the workers of a cluster make
smoother                         a fit without each row, and with one more, from its factor
feature_machine                  `FeatureMachineRegressor`, `FeatureMachineClassifier`, which learn a metric
feature_base, feature_kernel     what both share; what the kernel asked for reads, and what was learned of it
feature_search, feature_fits     its rounds, judged by rows held out; bandwidth and penalty by leave-one-out
feature_metric                   the metric of gradients
verify, verify_features          residuals from the data, in rows or in features, and their rounding
"""
