"""`python -m mercer …`: the commands of `mercer`."""

from mercer.cli.main import run

if __name__ == "__main__":
    run()
