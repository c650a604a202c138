# make run    the main job, on a fresh machine with Python >= 3.11, pip and a C++ compiler
# make test   lint, types, every test and the pages of the site, likewise
# make lint   ruff, clang-format and mypy; `make format` puts right what the two formatters complain about
# make course   the pictures of the course, drawn again from its pages
# make site   the documentation with its gallery, to build/site; warnings are errors
# make pages  the same without running the code of pages and examples, which tests run; a part of make test
# make studio     the page of `mercer studio` from its sources in studio/; needs node
# make browser    its tests in a real browser; installs chromium by apt-get where there is none
# make wheel  the sdist and the wheel, and the wheel tried in an empty environment
# make proofs     thousands of random kernels: proofs and witnesses refereed in fifty digits
# make fuzz       ten thousand damaged model files: each is refused, or is a model that works
# make processors   the delicate tests under every BLAS kernel and instruction set that this machine has
# make sanitize   the core's tests under AddressSanitizer and UBSan
# make ctrl-c     how long Ctrl-C takes to leave every machine, and how well max_seconds is kept
# make compilers  the core built by g++ and by clang++, and its tests on both
# make mutation     whether the tests notice deliberate small bugs, one at a time (about an hour; goes on where it was interrupted)
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
CORE    = $(wildcard core/*) $(wildcard core/*/*)

.PHONY: run test lint format studio browser site pages pictures course wheel proofs fuzz ctrl-c sanitize compilers processors mutation clean

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

run: $(VENV)/.installed
	$(BIN)/mercer co2 --output out --force

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CORE)
	! grep -nE '.{111,}' $(CORE)
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CORE)

test: lint
	$(BIN)/python -m pytest -n 2 -q
	$(MAKE) pages

course: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python docs/course/pictures.py

# The committed bundle, built again: the same sources and the same lock file give the same bytes. CI compares. (Not `npm ci`, which wants
# the builders of every other system in the lock file too.)
studio:
	cd studio && npm install --no-save --no-audit --no-fund && npm run check && npm run build

browser: $(VENV)/.installed
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get update && apt-get install -y chromium; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -p no:xdist tests/studio/test_browser.py

# No network at build time or in the browser.
# What the extra [site] of pyproject.toml asks for; installing the extra itself would build the core again.
SITE_NEEDS = $(shell $(PYTHON) -c "import tomllib; print(*(repr(n) for n in tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['site'] if not n.startswith('mercer')))")
$(VENV)/.site: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(SITE_NEEDS)
	touch $@

site: $(VENV)/.site
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

# tests/test_documents.py and tests/test_examples.py run what these leave out.
pages: $(VENV)/.site
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -j 2 -b html -D plot_gallery=0 -D pictures_run=0 docs build/pages

# The pictures of the README, from the examples.
pictures: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python docs/pictures.py

# The sdist, a wheel built from it, and that wheel in an empty environment outside of the project, tried by tests/smoke.py.
wheel: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf build/dist && $(BIN)/python -m build --outdir build/dist .
	rm -rf build/empty && $(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check build/dist/*.whl
	cd / && OMP_NUM_THREADS=1 $(abspath build/empty)/bin/python $(abspath tests/smoke.py)
	@ls -l build/dist | awk 'NF > 5 {print $$NF ": " $$5 " bytes"}'

PROOFS ?= 5000
SEED   ?= 1
proofs: $(VENV)/.installed
	MERCER_PROOFS=$(PROOFS) MERCER_SEED=$(SEED) OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q -n 2 --timeout 7200 -rP tests/laws/test_proofs.py

FUZZ ?= 10000
fuzz: $(VENV)/.installed
	MERCER_FUZZ=$(FUZZ) MERCER_SEED=$(SEED) OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q -n 2 --timeout 7200 -rP tests/files/test_damaged_files.py

ctrl-c: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.ctrl_c
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.ctrl_c --listen --seconds 10
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.ctrl_c --limit

# The core built with sanitizers in its own directory, its tests run against that build. CPython itself is not
# instrumented: the runtime is preloaded and leaks are not counted. The fork and Ctrl-C tests, which start other
# processes, and the mpmath tables, which only take time, stay out.
sanitize: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nanobind cmake ninja
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMERCER_SANITIZE=ON \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
	$(BIN)/cmake --build build/sanitize
	mkdir -p build/sanitize/package && rm -rf build/sanitize/package/mercer
	cp -r src/mercer build/sanitize/package/mercer && cp build/sanitize/_core*.so build/sanitize/package/mercer/
	PYTHONPATH=build/sanitize/package:tests ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so)" \
		$(BIN)/python -S -c "import sys, site; path = sys.path[:]; site.main(); sys.path[:0] = path; \
		sys.meta_path = [f for f in sys.meta_path if type(f).__name__ != 'ScikitBuildRedirectingFinder']; \
		import mercer._core, pytest; assert 'sanitize' in mercer._core.__file__, mercer._core.__file__; \
		sys.exit(pytest.main(['-q', '-p', 'no:xdist', '--timeout', '1800', '-k', 'not fork and not ctrl_c and not ulp', 'tests/core']))"

# The core by each compiler in a directory of its own, without warnings, and its tests run against that build.
COMPILERS ?= g++ clang++
compilers: $(COMPILERS:%=compiler-%)

compiler-%: $(VENV)/.installed
	@command -v $* >/dev/null || { echo "make compilers: there is no $* here; install it, or name others: make compilers COMPILERS=g++"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nanobind cmake ninja
	$(BIN)/cmake -S . -B build/$* -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=$* \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
	$(BIN)/cmake --build build/$*
	rm -rf build/$*/package && mkdir -p build/$*/package
	cp -r src/mercer build/$*/package/mercer && cp build/$*/_core*.so build/$*/package/mercer/
	PYTHONPATH=build/$*/package:tests $(BIN)/python -S -c "import sys, site; path = sys.path[:]; site.main(); sys.path[:0] = path; \
		sys.meta_path = [f for f in sys.meta_path if type(f).__name__ != 'ScikitBuildRedirectingFinder']; \
		import mercer._core, pytest; assert 'build/$*' in mercer._core.__file__, mercer._core.__file__; \
		sys.exit(pytest.main(['-q', '-p', 'no:xdist', 'tests/core']))"

# A copy of the project, one deliberate fault at a time, the tests of its room: tests/mutation/faults lists them.
mutation: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nanobind cmake ninja
	PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=tests $(BIN)/python -m mutation.run --core

# What rounds differently on another processor: solvers, evidence, modes, eigenpairs, the core's contract. One process for each of
# OpenBLAS's kernels, with one thread and with two, then one for each instruction set of the core; what the CPU lacks is left out.
# scikit-learn's checks are the same on all, and left out; about half a minute each on a quiet machine.
DELICATE = tests/solve tests/core/test_contract.py tests/laws/test_process_statements.py tests/laws/test_sparse_bayes_gains.py \
	tests/machines/test_gp_classification.py tests/machines/test_relevance.py tests/machines/test_pca.py -k "not test_the_contract"
processors: $(VENV)/.installed
	$(BIN)/python -m tests.processors $(DELICATE)

clean:
	rm -rf $(VENV) build out
