"""Kernels with a name.

families                    what a leaf sees of the data: `Radial`, `DotProduct`, `PerColumn`, and `@leaf`
radial, dot, columns        leaves of the three families
special, own                constants, noise, forms, angles, spectra; functions of a user
closing                     open lengthscales from the spread of the columns
inheritance                 which classes may be inherited from
"""
