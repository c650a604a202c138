"""Kernels with a name.

families                    what a leaf sees of the data: `Radial`, `DotProduct`, `PerColumn`, and `@leaf`
radial, dot, columns        leaves of the three families
special, own                constants, noise, forms, angles, spectra; functions of a user
inheritance                 which classes may be inherited from
"""
