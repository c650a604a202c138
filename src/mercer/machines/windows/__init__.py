"""Windows: averages of what lies near.

nadaraya_watson    `NadarayaWatson`
mean_embedding     `KernelMeanEmbedding`, Parzen densities
bandwidth          how wide a window is, by leaving rows out
"""
