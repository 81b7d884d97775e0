# Everything runs in .venv, which each target makes when it is missing.
PYTHON ?= python3
BIN := .venv/bin

# Tests start Python many times: bytecode is kept, whatever the surroundings say.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test test-drawn test-all check docs bench clean

quickstart: .venv/run
	$(BIN)/fedactors run scenarios/quickstart.yaml

# Meant to take less than four minutes on two cores. Three at a time: some tests wait for processes that they start.
test: .venv/dev
	$(BIN)/python -m pytest -m "not slow" -n 3 --dist worksteal

# All examples that Hypothesis draws; `make test` draws a third of them.
test-drawn: .venv/dev
	FEDACTORS_EXAMPLES=all $(BIN)/python -m pytest -m "hypothesis and not slow" -n 2 --dist worksteal

# Everything; `.ci/slow` has lanes of what takes long.
test-all: .venv/dev
	FEDACTORS_EXAMPLES=all $(BIN)/python -m pytest -n 2 --dist worksteal

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: .venv/run
	$(BIN)/python benchmarks/compare.py

.venv/run: pyproject.toml
	$(PYTHON) -m venv .venv
	@echo "Installing PyTorch, Ray and others into .venv: up to 6 GB and some minutes, this once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch .venv/run

.venv/dev: .venv/run
	@echo "Installing what tests and documentation need into .venv."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch .venv/dev

clean:
	rm -rf .venv build *.egg-info
