"""Least squares with a penalty on the length of f.

ridge, ridge_cv, least_squares   `KernelRidge`, `KernelRidgeCV`, `KernelLeastSquares`
problem, dual, parts             the linear system, the methods that solve it, weights and intercepts
verify                           residuals from the data
"""
