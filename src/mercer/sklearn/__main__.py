"""`python -m mercer.sklearn script.py …`: run a script, untouched, on the twins."""

import os
import runpy
import sys
import zipfile

import mercer.sklearn
from mercer.sklearn.patching import TWINS


def main(arguments: list[str]) -> None:
    """Run a script with its arguments, patched, as `python script.py …` would run it."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m mercer.sklearn script.py [arguments …]\n\n" + (mercer.sklearn.__doc__ or ""))
        sys.exit(0 if arguments else 2)
    script = arguments[0]
    if not os.path.exists(script):
        print(f"mercer.sklearn: there is no script {script!r}.", file=sys.stderr)
        sys.exit(2)
    mercer.sklearn.patch()
    names = ", ".join(sorted(original.__name__ for original in TWINS))
    print(f"mercer.sklearn: scikit-learn's {names} are mercer's in this run.", file=sys.stderr, flush=True)
    sys.argv[:] = arguments
    _see_what_the_script_sees(script)
    runpy.run_path(script, run_name="__main__")


def _see_what_the_script_sees(script: str) -> None:
    """Set `sys.path[0]` as Python does, so that the script can import what lies beside it."""
    if sys.flags.safe_path:
        return
    if os.path.isdir(script) or zipfile.is_zipfile(script):
        # a folder or an archive is put first by runpy itself
        del sys.path[0]
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(script))


if __name__ == "__main__":
    main(sys.argv[1:])
