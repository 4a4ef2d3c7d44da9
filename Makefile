# make demo | test | test-docs | lint | pins | checked | tampered | fuzz | cvxpy | soak | bench | reproduce | docs | release-check | attacked | relayed | clean      needs only python3 (3.11+) and make
#
# Everything runs in .venv, which is made when missing and reused otherwise. Each set of extras has
# a stamp file in it, so that pip runs again only after pyproject.toml changed.

PYTHON ?= python3
WORKERS ?= 2
LOCKED := $(addprefix --constraint ,$(wildcard requirements/lock.txt))

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Data kept beside the checkout are used unless the caller names another folder.
ifeq ($(origin CCMAC_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export CCMAC_DATA := $(abspath ../shared/data)
endif
endif

# Small dense blocks gain nothing from BLAS threads, and the workers would fight over the cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

# Tests and demos start many processes: what one has compiled, the others load.
unexport PYTHONDONTWRITEBYTECODE

# mpiexec of the mpich wheel lives here.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DELETE_ON_ERROR:
.PHONY: demo test pytest test-docs lint pins checked tampered fuzz cones cvxpy bench reproduce docs clean release-check lock soak test-floor test-floor-short attacked relayed

demo: $(VENV)/.installed-demo
	$(BIN)/ccmac demo

# Lint and tests at once: types are checked while the first tests run.
test: $(VENV)/.installed-test
	$(MAKE) --jobs 2 lint pytest

# One more than there are cores, as some tests wait for an answer or its absence.
pytest: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $$(($(WORKERS) + 1)) --dist worksteal -m "not gallery and not browser"

# The examples, drawn, and pages in a browser.
test-docs: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(WORKERS) -m "gallery or browser"

# Thousands of problems, all that is claimed of them judged by ccmac-check: make checked COUNT=4000
COUNT ?= 2000

checked: $(VENV)/.installed-test
	$(BIN)/python tests/checker/sweep.py adversarial --count $(COUNT) --jobs $(WORKERS)
	$(BIN)/python tests/checker/sweep.py interior --count 500 --jobs $(WORKERS)
	$(BIN)/python tests/checker/sweep.py conic --count 500 --jobs $(WORKERS)
	$(BIN)/python tests/checker/sweep.py grids --jobs $(WORKERS)
	$(BIN)/python tests/checker/sweep.py estimators --jobs $(WORKERS)
	$(BIN)/python tests/checker/sweep.py sets --jobs $(WORKERS)

# Changed proofs, of which no false one may be confirmed: make tampered COUNT=1000
tampered: $(VENV)/.installed-test
	$(BIN)/python tests/checker/tamper.py $(COUNT)

FIRST ?= 0
LAST ?= 300

# Random conic problems of known status, costs held against Clarabel
cones: LAST = 500
cones: $(VENV)/.installed-test
	PYTHONPATH=tests $(BIN)/python tests/cones/sweep.py $(FIRST) $(LAST)

# Random CVXPY models dealt to owners, held against Clarabel on the whole
cvxpy: $(VENV)/.installed-test
	PYTHONPATH=tests $(BIN)/python tests/cvx/sweep.py $(FIRST) $(LAST)

# Damaged files and command lines in workers with limits: make fuzz COUNT=3000 SEED=0
fuzz: COUNT = 3000
fuzz: SEED = 0
fuzz: $(VENV)/.installed-test
	$(BIN)/python tests/fuzz/sweep.py --count $(COUNT) --first $(SEED) --jobs $(WORKERS)

# On the lowest versions that pyproject.toml declares; the short form is part of .ci/run.
test-floor: $(VENV)/.installed-test
	$(BIN)/python tests/floor.py --jobs $(WORKERS)

test-floor-short: $(VENV)/.installed-test
	$(BIN)/python tests/floor.py --short

# Kills and stops at random moments: make soak SECONDS=600 PARTS="kill stop"
SECONDS ?= 900
PARTS ?= kill stop mpi owners suites

soak: $(VENV)/.installed-test
	$(BIN)/python tests/soak.py --parts $(PARTS) --seconds $(SECONDS)

# Owners and a relay under attack, with limits of memory and time: make attacked
attacked: $(VENV)/.installed-test
	$(BIN)/python tests/attacks.py

# Owners without an open port meet at a relay, in hosts of their own (root): make relayed WAN=...
relayed: $(VENV)/.installed-test
	$(BIN)/python benchmarks/faults.py $(WAN) --parts relay

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

# Review the difference of ledgers.json and words.json before committing it.
pins: $(VENV)/.installed-test
	$(BIN)/python tests/pins/regenerate.py

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/report.py --write docs/benchmarks.md
	$(BIN)/python benchmarks/conic_judge.py --write docs/benchmarks.md
	$(BIN)/python benchmarks/solve_floor.py
	$(BIN)/python benchmarks/joint_ratio.py
	$(BIN)/python benchmarks/exchange.py
	PYTHONPATH=checker $(BIN)/python benchmarks/checking.py

# All 302 runs of the paper in both profiles (half an hour), docs/reproduction.md and its figures.
reproduce: $(VENV)/.installed-test
	$(BIN)/python benchmarks/reproduction.py run out/reproduction --profile paper --jobs $(WORKERS) --resume
	$(BIN)/python benchmarks/reproduction.py run out/reproduction --profile practical --jobs $(WORKERS) --resume
	$(BIN)/python benchmarks/reproduction.py page out/reproduction --write

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Built, described, installed alone, the README run without a network, the archive's own tests.
release-check:
	.ci/release-check

clean:
	rm -rf $(VENV) .floor build dist site .benchmarks .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed-demo: EXTRAS := plot
$(VENV)/.installed-test: EXTRAS := test,lint,mpi,owners,plot,power,cvxpy,files,docs
$(VENV)/.installed-bench: EXTRAS := test,bench
$(VENV)/.installed-docs: EXTRAS := docs

$(VENV)/.installed-%: pyproject.toml $(wildcard requirements/lock.txt) | $(BIN)/python
	$(PIP) install --quiet $(LOCKED) --editable ".[$(EXTRAS)]" || \
		{ echo "the locked versions cannot be had here; going on with those that are allowed"; \
		$(PIP) install --quiet --editable ".[$(EXTRAS)]"; }
	touch $@

# The versions that tests and documentation are run with, anew: review the difference.
lock: $(VENV)/.installed-test
	$(PIP) install --quiet uv
	$(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
		--no-annotate --no-header pyproject.toml --output-file requirements/lock.txt

# Upgrading pip is a courtesy to old interpreters: their pip can install the package as well.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ccmac needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip || echo "pip was not upgraded; going on with the old one"
