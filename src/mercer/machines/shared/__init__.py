"""What every machine stands on.

base       `KernelEstimator`: a kernel as a parameter, rows and weights checked, scikit-learn's protocol
machine    `Machine`: the kernel on the rows of fit, judged, approximated if asked for, and what predictions are made of
support    `SupportMachine`: sums over support vectors
parameters what each parameter of a constructor may be, in words, and its lines of the docstrings
hints      what a parameter is called here, for those who guess
defaults   what `kernel=` means on given data
terms      which terms of a sum are noise of the observation
targets    targets checked as strictly as rows
publish    a fit seen whole, or not at all; Ctrl-C keeps the best so far
examine    `verify` for every machine: what it claims, recomputed (each package has its own `examine`)
"""
