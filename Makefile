# Everything that a fresh machine needs is set up on the way: .venv, with what the demo needs or all extras, for the
# real Kafka Java and Maven, and for the tests Prometheus, Alertmanager, Chromium, ROS 1 and mosquitto.
#
#   make demo                        the whole pipeline on this machine, with BabyAI agents as the source
#   make demo ARGS=--no-keep         the same, but it ends by itself instead of leaving its page open on a terminal
#   make demo SOURCE=habitat         the same with recorded Habitat episodes
#   make demo SOURCE=habitat-live    the same with an agent that walks in habitat-sim now, where that is installed
#   make demo BROKER=kafka           the same on a real Apache Kafka (or BROKER=HOST:PORT for one that runs already)
#   make test                        all tests; ARGS=... goes to pytest
#   make test-oldest                 the tests of the base install, on the oldest Python that it runs on
#   make check                       lint, format, types, import order, known vulnerabilities
#   make bench                       steps per second through one worker
#   make fuzz                        100,000 odd frames at the decoder and the core, and as many at a live worker
#   make faults                      faults of every kind on a real Kafka, and whether anything was lost or doubled
#   make dist                        wheel and source distribution in dist/, with an SBOM (CycloneDX) of what the wheel brings
#   make soak                        the pipeline at what one core gives, for 20 minutes: whether anything grows or lags
#   make venv | make clean           set up only | remove what was set up and built

BROKER ?= embedded
SOURCE ?= babyai
ARGS ?=
# One more than there are cores: tests wait for servers.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.springback-installed
INSTALLED_FOR_DEMO := $(VENV)/.springback-demo-installed

# The first Python on the path that is new enough.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done)

# The oldest Python that is here and that the base install runs on, with an environment of its own.
OLDEST ?= $(shell for candidate in python3.9 $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.9*/bin/python \
	python3.10 $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.10*/bin/python; do \
	$$candidate -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
OLDEST_VENV := .venv-oldest
ROOMS_OF_AGENTS := contract emitter environments habitat habitat_testbed mapping perturbations

# Tests start hundreds of Python programs: where they may not keep what they have compiled, each compiles all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-oldest check dist bench fuzz faults soak clean java java-if-possible monitoring-if-possible sources-if-possible

help:
	@sed -n '4,17s/^# *//p' Makefile

venv: $(INSTALLED)

# All of it is enough for the demo, too.
$(INSTALLED): pyproject.toml
	@deploy/set_up_venv.sh '$(PYTHON)' '$(VENV)' all,dev
	@touch $@ $(INSTALLED_FOR_DEMO)

$(INSTALLED_FOR_DEMO): pyproject.toml
	@deploy/set_up_venv.sh '$(PYTHON)' '$(VENV)' demo
	@touch $@

demo: $(INSTALLED_FOR_DEMO) $(if $(filter kafka,$(BROKER)),java)
	$(BIN)/springback demo --broker '$(BROKER)' --source '$(SOURCE)' $(ARGS)

test: $(INSTALLED) java-if-possible monitoring-if-possible sources-if-possible
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=all $(ARGS)

# What goes onto robots and into the environments of simulators; `tests/oldest_python.py` says which tests those are.
test-oldest:
ifeq ($(OLDEST),)
	@echo 'There is no Python 3.9 or 3.10 here (make OLDEST=/path/to/python3.9 test-oldest), so nothing is tested on one.' >&2
	@test -z "$$CI"
else
test-oldest: $(OLDEST_VENV)/.springback-installed
	$(OLDEST_VENV)/bin/python -m pytest -n $(JOBS) tests/producers tests/test_oldest_python.py \
		$(addprefix .src/springback/producers/,$(ROOMS_OF_AGENTS)) $(ARGS)
endif

$(OLDEST_VENV)/.springback-installed: pyproject.toml
	$(OLDEST) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[gymnasium]' \
		'hypothesis>=6.100' 'pytest>=8.3,<9.2' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6'
	@touch $@

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PATH="$(BIN):$$PATH" $(BIN)/python .ci/audit_dependencies.py
	$(BIN)/vermin --target=3.9- --no-tips --violations --quiet .src/springback/*.py $(addprefix producers/,$(ROOMS_OF_AGENTS)) \
		$(addprefix tests/producers/,$(ROOMS_OF_AGENTS))

fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz $(ARGS)
	SPRINGBACK_FUZZ_FRAMES=100000 $(BIN)/python -m pytest -n 0 tests/stream_processors/worker/test_worker_under_odd_frames.py

# The SBOM is of an environment that holds the wheel with all extras and nothing else; the tool that writes it has one too.
dist: $(INSTALLED)
	rm -rf dist build/sbom build/sbom-tool
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[all]"
	$(PYTHON) -m venv build/sbom-tool
	build/sbom-tool/bin/python -m pip install --quiet --disable-pip-version-check 'cyclonedx-bom>=5.0,<8'
	build/sbom-tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
		-o dist/springback.cdx.json build/sbom/bin/python

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks $(ARGS)

faults: $(INSTALLED) java
	$(BIN)/python -m tests.faults $(ARGS)

soak: $(INSTALLED) java
	$(BIN)/python -m tests.soak $(ARGS)

# The real Kafka runs on the machine's own Java, from its Maven artefacts.
java:
	@deploy/ensure_tools.sh java

# Without them the tests on the real Kafka are skipped, which CI does not accept.
java-if-possible monitoring-if-possible sources-if-possible: %-if-possible:
	@deploy/ensure_tools.sh $* || { test -z "$$CI" && echo 'Going on: the tests that need them will be skipped.' >&2; }

clean:
	rm -rf $(VENV) $(OLDEST_VENV) build dist .src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
