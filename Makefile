# To begin:
#   make demo   eight parties train one topic model on this machine
#   make test   all checks, from style to crash tests (`make test-all` adds the tests that are marked slow)
# For readers of the papers (`pip install '.[bench]'` has all peers; corpora: benchmarks/README.md):
#   make figures         measure what is missing of all figures and tables of the papers; rewrite docs/reproduction.md
#   make figures-quick   measure their small sizes again, and fail if a stored result is stale (at most 40 CPU minutes)
# For releases and deployment:
#   make dist         wheel and sdist, tested in a clean environment, with a bill of materials and hashes
#   make wheelhouse   that wheel and its dependencies, for sites without internet access (EXTRAS=network,neural)
#   make site         the pages of docs/ as a site in build/site that loads nothing from other servers
# Each target creates .venv with pinned packages on first use; later calls start within seconds.

PYTHON ?= python3
BIN := .venv/bin
EXTRAS ?= network
# pip would compile all 20,000 modules to bytecode, for more than a CPU minute; Python does so for those that are imported.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all lint figures figures-quick site dist wheelhouse clean
.DELETE_ON_ERROR:

demo: .venv/.core
	$(BIN)/tertulia demo

test: .venv/.dev .venv/.browser lint
	$(BIN)/python -m pytest -n 2 --dist loadfile tests

test-all: .venv/.dev .venv/.browser lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "slow or not slow" tests

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

figures: .venv/.dev
	$(BIN)/python -m benchmarks.book

figures-quick: .venv/.dev
	$(BIN)/python -m benchmarks.book --quick

site: .venv/.dev
	$(BIN)/python deploy/website.py build/site

dist:
	rm -f dist/SHA256SUMS
	$(MAKE) dist/SHA256SUMS

dist/SHA256SUMS: | .venv/.dev
	$(BIN)/python deploy/release.py dist --extras $(EXTRAS)

wheelhouse: dist/SHA256SUMS
	$(BIN)/python deploy/release.py wheelhouse --extras $(EXTRAS)

# Debian ships Python without venv: install it if it is missing and we have the rights.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tertulia needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv .venv; }

.venv/.core: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e .
	@touch $@

.venv/.dev: .venv/.core
	$(INSTALL) -e '.[dev]'
	$(BIN)/tertulia warm
	@touch $@

# Pages are tested in a real browser; if it cannot be installed, those tests are skipped with a message.
.venv/.browser: .venv/.dev
	@PYTHONPATH=tests $(BIN)/python -m helpers.get_browser && touch $@ || true

clean:
	rm -rf .venv runs build dist wheelhouse src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
