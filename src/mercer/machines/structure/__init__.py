"""Structure without targets, or between two samples.

kmeans, lloyd, spectral    `KernelKMeans`: steps of Lloyd, spectral start and lower bound
pca, centred, preimage     `KernelPCA`: the centred operator, and the way back to the columns
cca                        `KernelCCA`
mercer_map                 `MercerMap`, the map of an eigendecomposition
"""
