# Everything a newcomer needs: Linux (macOS in principle), Python >= 3.11 with venv, and make.
SHELL := /bin/bash
PYTHON ?= python3
UV_VERSION := 0.13.8
UV := .tools/bin/uv
RUN := $(UV) run --frozen --no-sync
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help setup run run-spirit test check format up bench chaos clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  make %-12s %s\n", $$1, $$2}'

run: setup ## Collect the demo forum (1,000 posts, 20,000 comments) and compare every row with the truth
	$(RUN) python -m demo_forum.run

run-spirit: setup ## Install a real forum (django-spirit), collect it, compare every row with its own database
	PYTHONPATH=tests $(RUN) python -m end_to_end.spirit.run

test: setup ## Run all quick tests, two at a time (under 10 minutes on 2 cores; ARGS="-k lease")
	$(RUN) pytest -n 2 --dist worksteal $(ARGS)

check: setup ## Lint, types, import contracts
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports --no-cache

format: setup ## Format the code
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

up: setup ## Run the pipeline on this machine (ARGS="--source sources/bbs.toml --forum 1")
	$(RUN) threadmill up $(ARGS)

BENCH ?= all
bench: setup ## Measure against the peers, side by side (BENCH=latency, ARGS="--short --json")
	$(UV) sync --frozen --all-packages --group bench --quiet
	@$(RUN) python -m bench.json_redis
	$(RUN) python -m bench $(BENCH) $(ARGS)

SEEDS ?= 1,2,3,drawn
JOBS ?= 3
chaos: setup ## Everything that can fail, fails; a table of what was lost (SEEDS=7, JOBS=1, ARGS="-k redis")
	$(UV) sync --frozen --all-packages --group chaos --quiet
	CHAOS_SEEDS=$(SEEDS) CHAOS_REPORT=data/chaos $(RUN) pytest tests/chaos -m "chaos or not chaos" -vv -n $(JOBS) --dist worksteal $(ARGS)

clean: ## Remove everything that was made here
	rm -rf .venv .tools data build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: .venv/.synced

.venv/.synced: $(UV) pyproject.toml uv.lock $(wildcard libs/*/pyproject.toml services/*/pyproject.toml demo_forum/pyproject.toml)
	$(UV) sync --frozen --quiet --python $$($(PYTHON) -c 'import sys; print(sys.executable)')
	@touch $@

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv .tools || \
	  { echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv"; rm -rf .tools; exit 1; }
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
