"""A leaf's formula as a thing, recorded once with a symbol.

formula     the recording: values, derivative, text
certain     its bounds in interval arithmetic
monotone    what follows of it: completely monotone functions, power series
typeset     its LaTeX
"""
