# Every target creates .venv when it is missing and starts at once when it is there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PEERS := .venv/.peers
LEAGUE := .venv-league/.ready

LOWEST := .venv-lowest/bin
LOWEST_READY := .venv-lowest/.ready
# What touches other packages most, in a few seconds each without compilation.
QUICK := $(addprefix tests/test_,$(addsuffix .py,package objects alphabets store serialize explain \
	models_multinomial kernels learn_ridge learn_logistic embed_spectrum plots))
PYTEST := -m pytest -q -n auto --dist loadfile --no-loadscope-reorder -m "not slow and not browser and not peers"

.PHONY: demo docs linkcheck test test-browser test-peers test-lowest test-lowest-quick check bench league slow fuzz mutate soak audit clean

demo: $(READY)
	$(BIN)/genkern demo

# Workers have one thread of BLAS each, since there are as many as cores: threads that wait for each other take CPU time.
test test-lowest: export OMP_NUM_THREADS := 1
test test-lowest: export OPENBLAS_NUM_THREADS := 1

test: $(READY)
	$(BIN)/python $(PYTEST)

# Pages in a real browser: Debian's packages chromium and chromium-driver. With CI=true a missing one is a failure.
test-browser: $(READY)
	$(BIN)/python -m pytest -q -m browser tests/browser

# Against packages that are too large for every checkout: torch and JAX, whose models are adapted, and HMMER's scores.
test-peers: $(PEERS)
	$(BIN)/python -m pytest -q -m peers $(wildcard tests/test_adapt*.py) tests/test_models_profile.py

# The suite with the lowest versions that pyproject.toml allows, and a quick part of it for continuous integration: the
# whole suite is collected, some of it run, one file of it compiled.
test-lowest: $(LOWEST_READY)
	$(LOWEST)/python $(PYTEST)

test-lowest-quick: $(LOWEST_READY)
	$(LOWEST)/python -m pytest -qq --collect-only
	NUMBA_DISABLE_JIT=1 $(LOWEST)/python $(PYTEST) $(QUICK)
	$(LOWEST)/python -m pytest -q tests/test_core_products.py

slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

# Hostile objects and parameters through all models, kernels and features: other ones in every run, so many of each.
fuzz: $(READY)
	GENKERN_FUZZ=$${GENKERN_FUZZ:-40} $(BIN)/python -m pytest -q -n auto $(wildcard tests/test_fuzz_*.py tests/test_io_fuzz.py)

# What the suite sees of changes to the package: a sample of mutants, one by one, in a copy.
mutate: $(READY)
	$(BIN)/python tests/mutate.py

# Fits, matrices, predictions and files for an hour: memory flat, no file left open, results the same.
soak: $(READY)
	$(BIN)/python tests/soak.py

# Known weaknesses of the packages in .venv. It asks PyPI; where that does not answer for each of them, it fails, and
# nothing is known.
audit: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable > .venv/installed.txt
	@$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --progress-spinner off -r .venv/installed.txt \
		> .venv/audit.txt 2>&1; ended=$$?; cat .venv/audit.txt; grep -Eq "^(Found|No known)" .venv/audit.txt || \
		echo "audit: no answer for all packages, so nothing is known of the others. Try again where PyPI can be reached."; \
		exit $$ended

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in docs/_build/html, without warnings; links to other sites need a network, and are checked apart.
docs: $(READY)
	$(BIN)/python -m sphinx -M html docs docs/_build -q -W --keep-going

linkcheck: $(READY)
	$(BIN)/python -m sphinx -M linkcheck docs docs/_build -q

bench: $(READY)
	$(BIN)/python -m benchmarks

# Errors on public sets, for whoever has them (GENKERN_DATA), beside those of other tools.
league: $(READY) $(LEAGUE)
	$(BIN)/python -m benchmarks.league --peers

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,peers]"
	touch $@

# aeon needs an older Numba than the package allows.
$(LEAGUE):
	test -x .venv-league/bin/python || $(PYTHON) -m venv .venv-league
	.venv-league/bin/python -m pip install --quiet --disable-pip-version-check "aeon>=1.6" "torch==2.13.0"
	touch $@

$(LOWEST_READY): pyproject.toml tests/lowest.py
	test -x $(LOWEST)/python || $(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/lowest.py > .venv-lowest/constraints.txt
	$(LOWEST)/python -m pip install --quiet --disable-pip-version-check -e ".[test]" -c .venv-lowest/constraints.txt
	touch $@

clean:
	rm -rf docs/_build docs/generated .venv .venv-lowest .venv-league .pytest_cache .mypy_cache .ruff_cache .hypothesis .mutants
