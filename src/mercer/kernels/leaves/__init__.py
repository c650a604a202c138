"""Kernels with a name.

leaf                        what all leaves share, and `@leaf`
recording                   a leaf that is a formula of one number
families                    what a leaf sees of the data: `Radial`, `DotProduct`, `PerColumn`
radial, dot, columns        leaves of the three families
special, angles, functions  constants, noise, forms, spectra; angles; functions of a user
distances, writing          distances and dot products of rows; values as text
closing                     open lengthscales from the spread of the columns
inheritance                 which classes may be inherited from
"""
