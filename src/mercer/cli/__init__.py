"""The command line. `main` imports nothing heavy, so that help and version come at once."""
