# Needs python3 >= 3.11 and make; the tests also need npm (for kubectl). Every target makes and refreshes .venv itself.
PYTHON ?= python3
PYTEST_ARGS ?=
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --constraint constraints.txt
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install demo test lint fmt perf soak clean

help:
	@echo 'make install  the venv with everything: runtime, tests, lint'
	@echo 'make demo     25 simulated clusters, the hub destroyed, restored and continued'
	@echo 'make test     all tests; PYTEST_ARGS="-k name" narrows them, WORKERS=4 uses more cores'
	@echo 'make lint     ruff, mypy, import-linter and the size rules'
	@echo 'make fmt      format, and fix what ruff can fix'
	@echo 'make perf     the micro benchmarks (docs/performance.md has the long measurements)'
	@echo 'make soak     the long rounds in full'
	@echo 'make clean    remove what these targets made'

install: $(VENV)/.full

demo: $(VENV)/.runtime
	$(BIN)/hublet demo

test: $(VENV)/.full
	$(BIN)/python tools/fetch_kubectl.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -p no:benchmark $(PYTEST_ARGS)

lint: $(VENV)/.full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_sizes.py

fmt: $(VENV)/.full
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

perf: $(VENV)/.full
	$(BIN)/python -m pytest perf --benchmark-only --timeout=600 $(PYTEST_ARGS)

soak: $(VENV)/.full
	$(BIN)/python tools/fetch_kubectl.py
	HUBLET_SOAK=1 $(BIN)/python -m pytest -m soak --timeout=0 $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) .tools .demo build dist *.egg-info
	rm -rf .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis .benchmarks
	find hub snapshot tools tests perf -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what the venv holds; one that was interrupted has no stamp and is made anew.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is missing or older than 3.11" >&2; \
	  echo "hint: make PYTHON=/path/to/python3.11 (or newer)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "error: $(PYTHON) cannot make a virtual environment" >&2; \
	  echo "hint: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.runtime: $(VENV)/.created $(PINS)
	$(PIP) --editable .
	@touch $@

$(VENV)/.full: $(VENV)/.created $(PINS)
	$(PIP) --editable '.[test,lint]'
	@touch $(VENV)/.runtime $@
