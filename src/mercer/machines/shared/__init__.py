"""What every machine stands on.

base       `KernelEstimator`: rows and weights checked, functions published, scikit-learn's protocol;
           `resolve`: what `kernel=` means on given rows
machine    `Machine`: a machine that holds one kernel on the rows of fit
support    `SupportMachine`: one whose functions are sums over support vectors
parameters what each parameter of a constructor may be, in words, and its lines of the docstrings
hints      what a parameter is called here, for those who guess
terms      which terms of a sum are noise of the observation
targets    targets checked as strictly as rows
kept       rows that a fitted machine keeps, read once
publish    a fit seen whole, or not at all; Ctrl-C keeps the best so far
examine    `verify` for every machine: what it claims, recomputed (each package has its own `examine`)
examined   claims that many machines make
"""
