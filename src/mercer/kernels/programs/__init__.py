"""What a kernel is for the compiled core.

program     the steps, the matrices they read, the way back of every gradient; `Place`, where kernels write
steps       recorded formulas as steps
terms       formulas of single columns as steps
"""
