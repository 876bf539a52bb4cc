# Everything starts here: `make help` lists the targets. Plain POSIX make, so that macOS's 3.81 works.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
MIN_PYTHON := 3.12
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 12))

# Two workers, a file at a time, so that what a module compiles is compiled once; in the order of tests/conftest.py.
PYTEST_FLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder
NEITHER := not slow and not gpu and not site

# A page that was warned of is read anew the next time.
SPHINX_FLAGS := --fail-on-warning --keep-going --quiet --jobs auto -c docs -b html -d build/docs/doctrees

# The first interpreter that runs and is new enough: a pyenv shim can exist and still refuse to run.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3.14 python3.13 python3.12 python3; do \
	if "$$p" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo "$$p"; break; fi; done)
endif

# Images of containers forbid Python to keep what it compiled; hundreds of processes would compile all packages anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all slow lint docs pictures notebooks lab lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1 :: \2/' \
		| awk -F ' :: ' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(STAMP) ## show what onebasin does in half a minute, and write demo/report.html
	@$(BIN)/onebasin demo

# Most of the time is XLA's compiling, which takes three fifths as long without most optimisations.
test: $(DEV_STAMP) ## run the tests that a change needs: no CmdStan, no pages, no notebooks
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(BIN)/python -m pytest $(PYTEST_FLAGS) -m "not full and not cmdstan and $(NEITHER)"

# CmdStan is assembled first, so that no test has to wait for it.
test-all: test ## then the rest: CmdStan's home and driver, pages, notebooks, whole runs of commands
	-@$(BIN)/onebasin cmdstan build
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(BIN)/python -m pytest $(PYTEST_FLAGS) -m "(full or cmdstan) and $(NEITHER)"

slow: $(DEV_STAMP) ## run the studies and other tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(DEV_STAMP) ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DEV_STAMP) ## build the documentation into build/docs/html, and check its pages; warnings are errors
	@$(BIN)/sphinx-build $(SPHINX_FLAGS) . build/docs/html || { rm -rf build/docs/doctrees; exit 1; }
	@$(BIN)/python -m pytest --quiet --no-header -m site tests/docs/test_site.py
	@echo "Open build/docs/html/index.html"

pictures: $(DEV_STAMP) ## make the pictures and reports of the documentation anew; needs Chromium
	$(BIN)/python docs/gallery/mixture_before_after.py
	$(BIN)/python docs/gallery/explanations.py
	$(BIN)/python docs/gallery/pictures.py build/gallery
	$(BIN)/python docs/gallery/make.py build/gallery

notebooks: $(DEV_STAMP) ## run every notebook anew at full size, from its text into its .ipynb
	$(BIN)/python -m notebooks.run

lab: $(DEV_STAMP) ## open the notebooks in JupyterLab
	@$(BIN)/jupyter trust notebooks/*.ipynb >/dev/null # else their tables have no style
	$(BIN)/jupyter lab $$([ "$$(id -u)" != 0 ] || echo --allow-root) notebooks

# The lock is installed first and alone, every file held to its hash; then the project, with the setuptools of the lock.
# Python compiles a module when it first imports it: compiling all of them takes a fifth of the disk space.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(STAMP): requirements.lock pyproject.toml
	@$(BIN)/python -c 'import pip; $(NEW_ENOUGH)' >/dev/null 2>&1 || $(MAKE) --no-print-directory new-venv
	@echo "Installing the locked packages into $(VENV) (some minutes the first time)"
	@$(PIP_INSTALL) --no-compile --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements-dev.lock $(STAMP)
	@echo "Installing the tools of development, the data sets and the sources of CmdStan into $(VENV)"
	@$(PIP_INSTALL) --no-compile --require-hashes -r requirements.lock -r requirements-dev.lock
	@touch $@

.PHONY: new-venv
new-venv:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Python $(MIN_PYTHON) or newer is missing: install it (Debian and Ubuntu: apt install python3 python3-venv; macOS: brew install python; or pyenv, uv, conda), or name one with make PYTHON=/path/to/python3" >&2; \
		exit 1; fi
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { \
		echo "PYTHON=$(PYTHON) does not run or is older than $(MIN_PYTHON): name a newer one with make PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@"$(PYTHON)" -m venv --clear $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian and Ubuntu: apt install python3-venv) and run make again" >&2; \
		exit 1; }

UV_COMPILE := build/lock/venv/bin/uv pip compile --quiet --universal --fork-strategy fewest --python-version $(MIN_PYTHON) --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
LOCKED_FOR := \# Exact versions for Python 3.12 to 3.14 on Linux, macOS and Windows, made by \`make lock\` from pyproject.toml:

lock: ## resolve requirements.lock and requirements-dev.lock anew from pyproject.toml
	@rm -rf build/lock && mkdir -p build/lock
	@"$(PYTHON)" -m venv build/lock/venv
	@build/lock/venv/bin/python -m pip install --quiet --disable-pip-version-check uv
	@echo "setuptools>=77" | $(UV_COMPILE) --output-file build/lock/run.txt pyproject.toml - > /dev/null
	@$(UV_COMPILE) --extra cluster --extra cmdstan --extra data --extra dev --extra docs --extra mclmc --extra notebook --extra zarr --constraint build/lock/run.txt \
		$$(sed -n 's/^\([a-z0-9.-]*\)==[^;]*$$/--no-emit-package \1/p' build/lock/run.txt) \
		--output-file build/lock/dev.txt pyproject.toml > /dev/null
	@{ echo "$(LOCKED_FOR) what runs."; cat build/lock/run.txt; } > requirements.lock
	@{ echo "$(LOCKED_FOR) what develops and tests besides."; cat build/lock/dev.txt; } > requirements-dev.lock
	@rm -rf build/lock
	@git diff --stat -- requirements.lock requirements-dev.lock

clean: ## remove the virtual environment and what builds and tests leave behind
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
