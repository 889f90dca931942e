# make demo     see it work, from nothing
# make test     all tests, from nothing
# make check    format, lint, types, architecture, tests, package
# make start-benchmark  time to the first line against a bare plugin
# make package  customer_memory-<version>.difypkg

PYTHON = .venv/bin/python

.PHONY: setup demo test check package lock start-benchmark import-benchmark concurrency-benchmark clean

setup:
	@sh development/bootstrap.sh

demo: setup
	@$(PYTHON) -m development.demo

test: setup
	@$(PYTHON) -m pytest

check: setup
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@$(PYTHON) -m pytest

package: setup
	@$(PYTHON) -m development.package

start-benchmark: setup
	@$(PYTHON) -m benchmarks.start

import-benchmark: setup
	@$(PYTHON) -m benchmarks.import_tickets

concurrency-benchmark: setup
	@$(PYTHON) -m benchmarks.concurrency

lock: setup
	@.tools/bin/uv lock
	@.tools/bin/uv export --quiet --frozen --no-dev --no-hashes --no-annotate --no-header --output-file requirements.txt

clean:
	rm -rf .venv .tools .chroma-server .mypy_cache .pytest_cache .ruff_cache .hypothesis *.difypkg
