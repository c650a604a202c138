"""`python -m mercer.sklearn script.py …`: run a script, untouched, on the twins."""

import runpy
import sys

import mercer.sklearn


def main(arguments: list[str]) -> None:
    """Run a script with its arguments, patched."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m mercer.sklearn script.py [arguments …]\n\n" + (mercer.sklearn.__doc__ or ""))
        sys.exit(0 if arguments else 2)
    mercer.sklearn.patch()
    sys.argv[:] = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
