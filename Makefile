# serve: run the gateway on its embedded model.   serve-tls: the same behind Caddy, with TLS.
# test: install what the suite needs and run it.
# All work from a clean clone and write to ignored folders of it only.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: serve serve-tls test lint lock clean

serve: .venv/serve.stamp
	$(BIN)/tiergate serve --config config.toml

serve-tls: .venv/serve.stamp
	scripts/serve-tls

test: .venv/test.stamp
	$(BIN)/python -m pytest $(ARGS)

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:
	scripts/lock

clean:
	rm -rf .venv build

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tiergate needs Python 3.11 or newer; try: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "the venv module is missing; on Debian or Ubuntu: apt install python3-venv"; exit 1; }

.venv/serve.stamp: requirements/cpu.lock pyproject.toml | .venv/bin/python
	@echo "installing tiergate and its locked dependencies into .venv"
	$(PIP) install --require-hashes -r requirements/cpu.lock
	$(PIP) install --no-deps --editable .
	@touch $@

.venv/test.stamp: requirements/dev.lock requirements/torch.txt requirements/parity.txt pyproject.toml | .venv/bin/python
	@echo "installing tiergate, the test suite's needs and the linters into .venv"
	$(PIP) install --require-hashes -r requirements/dev.lock
	$(PIP) install -r requirements/torch.txt -r requirements/parity.txt
	$(PIP) install --no-deps --editable .
	@touch $@ .venv/serve.stamp
