# Each target makes .venv itself when it is missing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/native/*)

.PHONY: help demo test test-slow lint format bench reproduce docs dist clean

help:
	@echo "make demo       install, learn real data, write reports into demo/"
	@echo "make test       the test suite, in minutes; test-slow for the rest"
	@echo "make lint       ruff, mypy, clang-format; make format mends what it can"
	@echo "make bench      every benchmark, both sides in one run (three quarters of an hour)"
	@echo "make reproduce  the page of both papers from the rows that are kept"
	@echo "make docs       the documentation into docs/_build/html"
	@echo "make dist       sdist and wheel into dist/, the wheel tried in an environment of its own"

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/sparsact: .venv/bin/python $(SOURCES)
	$(PIP) --editable ".[report]"
	@touch $@

.venv/dev: .venv/bin/python $(SOURCES)
	$(PIP) --editable ".[dev]"
	@touch $@ .venv/sparsact

.venv/docs: .venv/sparsact
	$(PIP) --editable ".[docs]"
	@touch $@

demo: .venv/sparsact
	$(BIN)/python examples/demo.py

test: .venv/dev
	$(BIN)/python -m pytest --quiet

test-slow: .venv/dev .venv/docs
	$(BIN)/python -m pytest --quiet -m slow

lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror src/native/*.cpp src/native/*.hpp

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i src/native/*.cpp src/native/*.hpp

bench: .venv/dev
	$(BIN)/python -m sparsact bench

reproduce: .venv/sparsact
	$(BIN)/sparsact reproduce

docs: .venv/docs
	$(BIN)/sphinx-build --quiet --fail-on-warning -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

dist: .venv/dev
	rm -rf dist build/smoke
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd build/smoke && bin/python ../../tests/smoke.py

clean:
	rm -rf .venv build dist demo docs/_build docs/api docs/gallery
