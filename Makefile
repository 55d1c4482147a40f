# What people and CI run. `make demo` is the shortest way to see Ramify work.

VENV := .venv
BIN := $(VENV)/bin
EXAMPLE ?= humanize
SANDBOX ?= auto
PYTHON ?=
JOBS ?= 3  # of two cores, two workers leave a quarter unused
PYTEST_FLAGS ?=
PYTEST = scripts/run-tests -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)  # a file's tests share sandboxes
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
FLYWHEEL = $(or $(OUT),build/flywheel)
FLYWHEEL_PYTHONS = --cpu --train-python $(or $(RAMIFY_TRAIN),.train)/bin/python --serve-python $(or $(RAMIFY_VLLM),.vllm)/bin/python
FIGURES = PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m benchmarks.flywheel.figures --out $(FLYWHEEL) $(FLYWHEEL_PYTHONS)

unexport PYTHONDONTWRITEBYTECODE  # the tests begin thousands of Pythons: each would compile all that it imports

.PHONY: setup demo test test-all check docs reference image vllm-test ray-test web-test swebench-test train-test flywheel flywheel-modules flywheel-chat flywheel-printed flywheel-env

setup: $(VENV)/.dev-installed

demo: $(VENV)/.installed $(if $(filter docker,$(SANDBOX)),image)
	@RAMIFY=$(CURDIR)/$(BIN)/ramify examples/run $(EXAMPLE) --sandbox $(SANDBOX)

test: setup  # in minutes: every law and contract, on small cases
	@$(PYTEST) --quick --hypothesis-profile=quick

test-all: setup  # also what takes long, and what needs Docker or a browser
	@$(PYTEST)

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	@$(BIN)/pytest -qq --collect-only >/dev/null 2>&1 &  # compiles the tests on another core, or each worker would do it
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST)

docs: setup  # the documentation site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "build/site/index.html"

reference: setup  # docs/reference and docs/systems.md, from the code and the recipes
	@$(BIN)/python docs/reference.py

image:
	@scripts/base-image

vllm-test: setup  # the model policy against a real vLLM server on the CPU
	@scripts/vllm-env
	@$(BIN)/pytest -q -m vllm tests/vllm $(PYTEST_FLAGS)

ray-test: setup  # batches on a cluster of two machines, both of them this one
	@$(PIP) -e '.[ray]'
	@$(BIN)/pytest -q -m ray tests/on_ray $(PYTEST_FLAGS)

web-test: setup  # the bundled JavaScript of reports is what its build step makes
	@$(BIN)/pytest -q -m web $(PYTEST_FLAGS)

swebench-test: setup image  # our verdicts against SWE-bench's own harness, 4.1.0 and 5.0.2
	@scripts/swebench-env
	@$(BIN)/pytest -q -m swebench tests/swebench $(PYTEST_FLAGS)

train-test: setup  # real trainings with TRL on the CPU
	@scripts/train-env
	@$(BIN)/pytest -q -m train tests/train $(PYTEST_FLAGS)

flywheel: flywheel-env  # searches, a model trained on them and served, and what it saves; kept in the folder OUT
	@$(FIGURES)

flywheel-modules: flywheel-env  # the same on modules of real projects, which pip downloads; over an hour
	@$(FIGURES) $$($(BIN)/python -m benchmarks.flywheel.distributions $(FLYWHEEL)/repositories) \
		--mutants 140 --held-out-mutants 180 --lines 60 --cpu-s 1.0 \
		--source $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
		--source $(FLYWHEEL)/repositories --warm-up 48000 --rows-a-function 4 --warm-up-steps 8000 --steps 80

flywheel-chat: flywheel-env  # a chat model from nothing, trained by its own searches and, as a control, by all of its lines
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m benchmarks.flywheel.chat --out $(FLYWHEEL)-chat $(FLYWHEEL_PYTHONS)

flywheel-printed: setup  # what trees add that source does not hold: models with and without what the tests printed
	@scripts/train-env
	@$(BIN)/python -m benchmarks.flywheel.printed --out $(FLYWHEEL)-printed --cpu --train-python $(or $(RAMIFY_TRAIN),.train)/bin/python

flywheel-env: setup
	@scripts/train-env
	@scripts/vllm-env

$(BIN)/python:
	@python=$$(for p in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done); \
	if [ -z "$$python" ]; then \
		echo "no Python 3.11 or newer found (Debian, Ubuntu: apt install python3 python3-venv); name one: make PYTHON=..." >&2; exit 1; fi; \
	if ! $$python -c 'import ensurepip' 2>/dev/null; then \
		echo "$$python cannot make virtual environments (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; fi; \
	echo "making $(VENV) with $$python" >&2; $$python -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing ramify (a minute or two)" >&2
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev-installed: $(VENV)/.installed
	@echo "installing the tools of development" >&2
	@$(PIP) 'pip>=25.1'
	@$(PIP) --group dev
	@touch $@
