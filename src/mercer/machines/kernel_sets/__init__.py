"""Several kernels at once, and their weights.

margin, ridge    `MultipleKernelClassifier`, `MultipleKernelOneClass`, `MultipleKernelRegressor`
multiple         what they share
weights          `combine` and `weights_of`
"""
