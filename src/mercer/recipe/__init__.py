"""From a table to a model: `mercer.fit(table, target)`.

given          what is given becomes rows, a target and a task
tournament     kernels compete by their evidence, on a few rows first
features       kernels that learn their features, as the machine and as kernels that compete
ladder         the machine for all rows, by their number, memory and time
estimate       how good the model is on rows that it has not seen
estimators     `TableRegressor` and `TableClassifier`, which do all of it in `fit`
leaks          columns that seem to give the answer away
explain        what one prediction rests on
kept           rows to look at a fitted model with
stored         what of it a model file holds
door           `mercer.fit`
compare        `mercer.compare`: kernels and machines on the same folds
"""
