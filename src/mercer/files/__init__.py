"""Model files: a fitted machine as data, with checksums, and back (`docs/files.md`).

`save` writes and `load` reads. `nodes` spells values as JSON, `write` and `read` turn values into nodes and
back, `registry` is the table of what a file may name, filled by `forms`, `features`, `machines` and `twins`;
`facts` says what each attribute must be, `trial` asks a machine that was read, `container` keeps bytes.
"""

from mercer.files.load import load
from mercer.files.save import Saved, save

__all__ = ["Saved", "load", "save"]
