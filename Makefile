# make run    the main job, on a fresh machine with Python >= 3.11, pip and a C++ compiler
# make test   lint, types and every test, likewise
# make sanitize   the core's tests under AddressSanitizer and UBSan
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
CORE    = $(wildcard core/*) $(wildcard core/*/*)

.PHONY: run test lint clean

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

run: $(VENV)/.installed
	$(BIN)/mercer check "66.0**2*RBF(67.0) + 2.4**2*RBF(90.0)*Periodic(1.0, 1.3) + 0.66**2*RationalQuadratic(1.2, alpha=0.78) + 0.19**2*White(1.0)"
	mkdir -p out
	$(BIN)/mercer draw "RBF(2.0) * Periodic(1.0) + 0.01*White(1.0)" -o out/kernel.png --force

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 -q

clean:
	rm -rf $(VENV) build out
