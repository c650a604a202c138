"""Least squares with a penalty on the length of f.

ridge, ridge_cv, least_squares   `KernelRidge`, `KernelRidgeCV`, `KernelLeastSquares`
problem, dual, parts             the linear system, the methods that solve it, weights and intercepts
verify, verify_features          residuals from the data, in rows or in features, and their rounding
"""
