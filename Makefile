# Two commands are all a newcomer needs:
#   make demo   eight parties train one topic model on this machine
#   make test   everything that must hold, from style to crash tests (`make test-all` adds what is rare and long)
# Who releases or deploys needs two more:
#   make dist         wheel and sdist, tried in a clean environment, with a bill of materials and hashes
#   make wheelhouse   that wheel and all that it needs, in one folder, for houses without internet (EXTRAS=network,neural)
#   make site         the pages of docs/ as a site that loads nothing from elsewhere, in build/site
# Each sets up .venv with pinned packages on first use; a second call starts in seconds.

PYTHON ?= python3
BIN := .venv/bin
EXTRAS ?= network

.PHONY: demo test test-all lint site dist wheelhouse clean
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

site: .venv/.dev
	$(BIN)/python deploy/website.py build/site

dist:
	rm -f dist/SHA256SUMS
	$(MAKE) dist/SHA256SUMS

dist/SHA256SUMS: | .venv/.dev
	$(BIN)/python deploy/release.py dist --extras $(EXTRAS)

wheelhouse: dist/SHA256SUMS
	$(BIN)/python deploy/release.py wheelhouse --extras $(EXTRAS)

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
	$(BIN)/tertulia warm
	@touch $@

# Pages are tested in a real browser; where it cannot be installed, those tests skip and say so.
.venv/.browser: .venv/.dev
	@PYTHONPATH=tests $(BIN)/python -m helpers.get_browser && touch $@ || true

clean:
	rm -rf .venv runs build dist wheelhouse src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
