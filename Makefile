# make demo     see it work, from nothing
# make test     all tests, from nothing; WORKERS=n at once, each with a Chroma server and a plugin process
# make check    format, lint, types, architecture, tests, package
# make start-benchmark  time to the first line against a bare plugin
# make recall-benchmark  how well memories are found, beside mem0
# make scale-benchmark  the cost of calls among many memories, beside bare calls of Chroma
# make peers-benchmark  adding and searching beside mem0
# make load-benchmark  many calls at once, long use, and a Chroma server that goes away
# make package  customer_memory-<version>.difypkg

PYTHON = .venv/bin/python
WORKERS = 3
PYTEST = $(PYTHON) -m pytest --numprocesses $(WORKERS) --dist worksteal

.PHONY: setup demo test check package lock start-benchmark import-benchmark concurrency-benchmark recall-benchmark scale-benchmark peers-benchmark load-benchmark clean

setup:
	@sh development/bootstrap.sh

demo: setup
	@$(PYTHON) -m development.demo

test: setup
	@$(PYTEST)

check: setup
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@$(PYTEST)

package: setup
	@$(PYTHON) -m development.package

start-benchmark: setup
	@$(PYTHON) -m benchmarks.start

import-benchmark: setup
	@$(PYTHON) -m benchmarks.import_tickets

concurrency-benchmark: setup
	@$(PYTHON) -m benchmarks.concurrency

recall-benchmark: setup
	@$(PYTHON) -m benchmarks.recall_quality

scale-benchmark: setup
	@$(PYTHON) -m benchmarks.scale

peers-benchmark: setup
	@$(PYTHON) -m benchmarks.peers

load-benchmark: setup
	@$(PYTHON) -m benchmarks.load

lock: setup
	@.tools/bin/uv lock
	@.tools/bin/uv export --quiet --frozen --no-dev --no-hashes --no-annotate --no-header --output-file requirements.txt

clean:
	rm -rf .venv .tools .chroma-server .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis *.difypkg
