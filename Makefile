# Every target creates .venv when it is missing and starts at once when it is there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check bench slow clean

demo: $(READY)
	$(BIN)/genkern demo

test: $(READY)
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow"

slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
