"""Relevance vectors: sparse Bayesian learning.

relevance         `RelevanceVectorRegressor`, `RelevanceVectorClassifier`
sparse_bayes      one column in, out or moved at a time, and what that gains
sparse_laplace    the same for classes
"""
