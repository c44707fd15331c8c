# Each target makes .venv itself when it is missing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
SOURCES := pyproject.toml papers/pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/native/*)

.PHONY: help demo test test-tables test-torch test-theory test-grids test-papers test-slow digests coverage test-cpus sanitize fuzz lint types format audit lock bench reproduce docs docs-check dist clean

help:
	@echo "make demo       install, learn real data, write reports into demo/"
	@echo "make test       the tests of sparsact, in minutes: test-tables, test-torch and test-theory are its three areas"
	@echo "make test-grids the values that make test leaves out; test-papers the experiments; test-slow the rest"
	@echo "make digests    what every learner computes, compared with what is kept; finds changes that tests do not see"
	@echo "make coverage   the suite again, with the share of branches it runs"
	@echo "make test-cpus  the numerical tests as other processors run them: BLAS core types, instruction sets"
	@echo "make sanitize   the kernels' tests and hostile files under AddressSanitizer and UBSan; make fuzz looks for more"
	@echo "make lint       ruff and clang-format; make types is mypy, which reads the types of torch and so installs it"
	@echo "make format     mends what ruff and clang-format can"
	@echo "make audit      known vulnerabilities and licences of what is installed; make lock renews ci.lock"
	@echo "make bench      every benchmark whose packages are installed, both sides in one run (hours)"
	@echo "make reproduce  the page of both papers from the rows that are kept"
	@echo "make docs       the documentation into docs/_build/html; docs-check opens its pages in Chromium"
	@echo "make dist       sdist and wheel into dist/, the wheel tried in an environment of its own"

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/sparsact: .venv/bin/python $(SOURCES)
	$(PIP) --editable ".[cli,report]" --editable papers
	@touch $@

.venv/dev: .venv/bin/python $(SOURCES)
	$(PIP) --editable ".[dev]" --editable papers
	@touch $@ .venv/sparsact

.venv/docs: .venv/sparsact
	$(PIP) --editable ".[docs]"
	@touch $@

demo: .venv/sparsact
	$(BIN)/python examples/demo.py

# On processes of one thread each, a file of tests at a time; tests of threads ask for theirs. Bytecode is
# kept, for tests start Python. Three processes on two cores: a quarter of the time is spent waiting. Files come as they
# are collected, for the number of their tests says nothing of their seconds; conftest.py keeps two groups together.
ONE_THREAD := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1
RUN_TESTS := $(BIN)/python -m pytest --quiet --numprocesses 3 --dist loadfile --no-loadscope-reorder
PYTEST := $(ONE_THREAD) $(RUN_TESTS)

test: .venv/dev
	$(PYTEST)

# The areas of tests/areas.py, each alone.
test-tables test-torch test-theory: test-%: .venv/dev
	$(PYTEST) --area $*

# The marks say what `make test` leaves out: `grid`, which .ci/run tests, and `slow`, for a release.
test-grids: .venv/dev
	$(PYTEST) -m "(grid or hypothesis) and not slow" --hypothesis-profile main

test-papers: .venv/dev
	$(PYTEST) papers/src papers/tests

coverage: .venv/dev
	$(PIP) pytest-cov
	$(PYTEST) -m "not slow" src benchmarks tests papers --cov sparsact --cov sparsact_papers --cov-branch --cov-report html:build/coverage
	$(BIN)/coverage report --format total

test-slow: .venv/dev .venv/docs
	$(BIN)/python -m pytest --quiet -m "slow or grid or hypothesis" --hypothesis-profile thorough src benchmarks tests papers

# What every learner, candidate and layer computes, beside what is kept: `tests/digests/digests.py renew` keeps it anew.
digests: .venv/dev
	$(BIN)/python tests/digests/digests.py compare

# Results must not depend on the processor: the numerical tests again, on the code paths of other machines' BLAS and on
# every instruction set of the kernels; then what else a processor decides, both ways, where it matters. The variables
# are those that kernels/dispatch.py lists; tests/test_forced.py fails where one has no effect. SkylakeX needs AVX-512.
AVX512 := $(shell grep -q avx512_vpopcntdq /proc/cpuinfo 2>/dev/null && echo OPENBLAS_CORETYPE=SkylakeX,SPARSACT_ISA=avx512)
AVX2 := $(shell grep -q avx2 /proc/cpuinfo 2>/dev/null && \
    echo OPENBLAS_CORETYPE=Haswell,SPARSACT_ISA=avx2 OPENBLAS_CORETYPE=Zen,SPARSACT_ISA=avx2)
CPUS ?= $(AVX512) $(AVX2) OPENBLAS_CORETYPE=Sandybridge,SPARSACT_ISA=portable
VNNI := $(if $(AVX512),$(shell grep -q avx512_vnni /proc/cpuinfo 2>/dev/null && echo SPARSACT_VNNI=1,SPARSACT_CACHE_WAYS=12))
NUMERICAL := tests/test_forced.py tests/kernels tests/fourier tests/learners tests/certificate tests/rademacher tests/papers \
    tests/inference tests/differential

test-cpus: .venv/dev
	run() { echo "$$1"; $(ONE_THREAD) env $$(echo "$$1" | tr , ' ') $(RUN_TESTS) $$2 || exit 1; }; \
	for cpu in $(CPUS); do run $$cpu "$(NUMERICAL)"; done; \
	for cpu in $(VNNI) SPARSACT_AMX=0 SPARSACT_VNNI=0,SPARSACT_CACHE_WAYS=8; do run $$cpu "tests/test_forced.py tests/kernels"; done; \
	run OMP_NUM_THREADS=2 "tests/test_forced.py tests/layers"

# A copy of the package with kernels that check themselves, in an environment that finds it before the installed one; the
# sanitizers must be in the process before Python is. First a planted error must be caught, or nothing else is believed.
SANITIZED := build/sanitize/package
# AddressSanitizer looks for the C++ library's throw once, when the process begins.
SANITIZER = $(shell for library in libasan.so libstdc++.so.6; do $${CXX:-g++} --print-file-name=$$library; done)
SANITIZE_TESTS ?= tests/kernels tests/hostile

sanitize: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/sanitize -G Ninja -DSPARSACT_SANITIZE=ON -DCMAKE_BUILD_TYPE=None \
	    -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/sanitize
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED) && cp -r src/sparsact $(SANITIZED) && rm -f $(SANITIZED)/sparsact/kernels/_native*
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --install build/sanitize --prefix $(SANITIZED)
	$(BIN)/python tests/sanitized.py environment build/sanitize/env $(SANITIZED)
	export LD_PRELOAD="$(SANITIZER)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	    UBSAN_OPTIONS=print_stacktrace=1 SPARSACT_KERNELS=native OMP_NUM_THREADS=1; \
	build/sanitize/env/bin/python tests/sanitized.py canary $(SANITIZED) && \
	build/sanitize/env/bin/python -m pytest --quiet -p no:cacheprovider --capture=sys -m "not slow" $(SANITIZE_TESTS)

# Coverage-guided search for files that do harm; what it finds is kept in build/fuzz-crash-*.
FUZZ_SECONDS ?= 60

.venv/fuzz: .venv/sparsact
	$(PIP) --editable ".[fuzz]"
	@touch $@

fuzz: .venv/fuzz
	mkdir -p build
	OMP_NUM_THREADS=1 $(BIN)/python tests/hostile/atheris_files.py build/fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	    -rss_limit_mb=4096 -artifact_prefix=build/fuzz-

# These two programs alone are installed in seconds. Types are checked against those of torch, scipy and others: without
# them every subclass of nn.Module is one of Any, which strict mypy refuses, so that `make types` installs all.
.venv/lint: .venv/bin/python $(SOURCES)
	$(PIP) clang-format ruff
	@touch $@

lint: .venv/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror src/native/*.cpp src/native/*.hpp

types: .venv/dev
	$(BIN)/mypy

format: .venv/lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i src/native/*.cpp src/native/*.hpp

# pip-audit asks the registry for known vulnerabilities, so it wants a network.
.venv/audit: .venv/dev
	$(PIP) pip-audit pip-licenses
	@touch $@

audit: .venv/audit
	$(BIN)/python tests/licences.py
	$(BIN)/pip-audit --requirement ci.lock --require-hashes --disable-pip --strict

# What CI installs, with hashes: Python 3.11 on Linux x86-64, the CPU build of torch.
lock: .venv/dev
	$(PIP) uv
	echo "torch==2.13.0+cpu" | $(BIN)/uv pip compile pyproject.toml --extra dev --extra docs --extra fuzz --generate-hashes \
	    --constraint constraints.txt --override - --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	    --no-annotate --no-emit-index-url --no-emit-find-links --no-header --quiet --output-file ci.lock

bench: .venv/dev
	$(BIN)/python -m benchmarks --rows results/benchmarks.jsonl

reproduce: .venv/sparsact
	$(BIN)/sparsact reproduce

docs: .venv/docs
	rm -rf docs/api docs/_build/html/api # pages of names that there are no longer
	$(BIN)/sphinx-build --quiet --fail-on-warning -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

docs-check: docs
	$(PIP) axe-playwright-python playwright
	$(BIN)/python docs/check_pages.py docs/_build/html

dist: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	PATH="$(CURDIR)/$(BIN):$$PATH" .ci/wheel dist/*.whl

clean:
	rm -rf .venv build dist demo docs/_build docs/api docs/gallery
