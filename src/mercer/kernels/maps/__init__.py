"""Feature maps: explicit ones, and spectra to draw random ones from.

explicit, planning, parts       `features(d)`: which map, how large, and of what it is made
monomials, polynomials          kernels that are polynomials of the columns, exactly
spectral                        frequencies of stationary kernels
"""
