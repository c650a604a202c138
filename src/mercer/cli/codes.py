"""The exit codes of all commands, in one table.

0     done; of `mercer check`: proved
1     not done, and standard error says why: a table or a file that cannot be used; of `check`: refuted
2     of `check`: undecided
3     of `check`: proved as declared
64    an expression or an option that cannot be read
70    an unexpected failure
74    what was found cannot be written: a full disk
130   Ctrl-C
141   the reader has closed the pipe (a shell's word for SIGPIPE)
"""

DONE = 0
FAILED = 1
USAGE = 64
FAILURE = 70
UNWRITTEN = 74
INTERRUPTED = 130
