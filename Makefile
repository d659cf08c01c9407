# Two commands are all a newcomer needs:
#   make demo   three parties train one topic model on this machine
#   make test   everything that must hold, from style to crash tests (`make test-all` adds what is rare and long)
# Each sets up .venv with pinned packages on first use; a second call starts in seconds.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint clean
.DELETE_ON_ERROR:

demo: .venv/.core
	$(BIN)/tertulia demo

test: .venv/.dev lint
	$(BIN)/python -m pytest -n 2 --dist loadfile tests

test-all: .venv/.dev lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "slow or not slow" tests

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Debian ships Python without venv; where that is missing and we may install it, we do.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tertulia needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv .venv; }

.venv/.core: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/.dev: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m tertulia.cli.precompile
	@touch $@

clean:
	rm -rf .venv runs build dist src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
