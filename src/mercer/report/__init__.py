"""Reports: one HTML file each, without scripts, with nothing fetched.

page           the pieces of a page, its style, and how it looks on a phone, in the dark and in print
words          numbers and names as words of a page
fit            the report of a fit, `model.report(path)`: what was done, how good it is, how to have it again
fit_rows       what it says with rows at hand: the fit, the columns, how alike rows are
fit_pictures   its pictures
judged         bands, probabilities and confusions of an estimate
columns        which columns matter: lengthscales, likeness, and the error without them
"""
