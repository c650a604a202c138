"""From a file to a table, and from a table to a kernel for it.

intake     a file of any format becomes a table; `delimited`, `columns` and `svmlight` are its parts
outlet     `write_table`: a table becomes a file of any of those formats
roles      what each column is: numbers, categories, a date, text, or nothing to learn from
propose    `table_kernel`: a kernel from the roles, with the reasons in words
grouping   how many clusters the rows have
"""
