# The project's commands. `make help` lists them. Everything Python happens in $(VENV), made on first use;
# Cargo builds into $(CARGO_TARGET_DIR) where that is set, into target/ otherwise.

PYTHON ?= python3
VENV ?= .venv
DOCS_VENV ?= .venv-docs
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 4)
CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR

# The interpreter that PyO3 asks for its configuration; always the same one, so that nothing is compiled twice.
BIN := $(abspath $(VENV))/bin
DOCS_BIN := $(abspath $(DOCS_VENV))/bin
export PYO3_PYTHON := $(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The slowest tests are named at the end, and how long all of them took.
PYTEST := --durations=15 --durations-min=1

# Modules without kernels, foreign code or devices.
PURE := array:: process:: tape:: interp:: watch:: autodiff::queue

SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md \
    $(shell find src shaders python -type f ! -name '*.pyc' ! -name '*.so' 2>/dev/null)
TOOLS := $(VENV)/.tools
LINTERS := $(VENV)/.linters
WHEEL := dist/.wheel

# Installs the newest wheel with the extra $(1); pip alone would keep an older build of the same version.
define install
	@echo "==> installing the wheel with its '$(1)' extra into $(VENV)"
	@$(BIN)/pip install --quiet --force-reinstall --no-deps dist/wengert-*.whl
	@$(BIN)/pip install --quiet "$$(ls dist/wengert-*.whl)[$(1)]"
	@rm -f $(VENV)/.develop
endef

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python test-ranks test-gpu test-bits search array-api build wheel sdist lint types format stubs operations pictures bench budgets bench-peers bench-gpu bench-growth bench-loops bench-matmul sanitize loom memcheck docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## build a release wheel, install it, run the demonstration
	@echo "==> python -m wengert.demo"
	@$(BIN)/python -m wengert.demo

test: test-rust test-python test-ranks test-gpu ## build a release wheel, install it, run every test (Rust and Python)
	@echo "==> all tests passed"
	@$(BIN)/python tools/adapters.py --not-run

# Tests that need an adapter are marked as ignored: they run where there is one, and where WENGERT_GPU demands one.
GPU_RUST_TESTS ?= --include-ignored
test-rust: ## the Rust tests alone
	@echo "==> cargo test"
	@if [ -n "$$WENGERT_GPU" ] || cargo run --quiet --locked --profile test --example adapters; \
	then cargo test --locked -- $(GPU_RUST_TESTS); \
	else echo "no GPU adapter: tests that need one are ignored"; cargo test --locked; fi

test-python: $(VENV)/.test ## the Python tests that need no GPU adapter and one process
	@echo "==> pytest on the CPU, $(JOBS) processes"
	@$(BIN)/python -m pytest $(PYTEST) -n $(JOBS) -m "not gpu and not ranks"

test-ranks: $(VENV)/.test ## the Python tests that start several processes with mpirun, one at a time
	@echo "==> pytest on several ranks"
	@$(BIN)/python -m pytest $(PYTEST) -m "ranks and not gpu" tests/distributed

test-gpu: $(VENV)/.test ## the GPU tests, one at a time, on the adapter that there is; without one they are skipped
	@echo "==> pytest on the GPU"
	@$(BIN)/python -m pytest $(PYTEST) -m gpu

test-bits: $(VENV)/.test ## every operation as a program, bit for bit, over instruction sets and threads
	@$(BIN)/python tools/bits.py

search: $(VENV)/.test ## the random searches of tests/robustness, an hour each: make search MINUTES=10
	@$(BIN)/python tools/search.py --minutes $(or $(MINUTES),60)

array-api: $(VENV)/.test ## the public suite of the array API standard, from a checkout: make array-api SUITE=/path/to/array-api-tests
	@$(BIN)/python tools/array_api.py "$(SUITE)"

loom: ## the team of threads under loom: every order of its events
	@echo "==> loom"
	@RUSTFLAGS="--cfg loom" cargo test --quiet --locked --release --manifest-path tests/loom/Cargo.toml --target-dir target/loom

# The binary of the unit tests runs under valgrind; nothing is compiled for it.
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
memcheck: ## the unit tests of buffers, blocks, shapes and nodes under valgrind: reads of what is freed, out of bounds or unset
	@echo "==> valgrind"
	@CARGO_TARGET_$(HOST)_RUNNER="valgrind -q --error-exitcode=9" cargo test --quiet --locked --lib -- $(PURE)

sanitize: $(VENV)/.test ## tests of files, capsules, buffers and indices in a build with the address sanitizer
	@echo "==> address sanitizer"
	@$(BIN)/python tools/sanitize.py $(TESTS)

build: $(TOOLS) ## quick development build, installed into the virtual environment
	@echo "==> maturin develop"
	@rm -f $(VENV)/.demo $(VENV)/.test
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked --extras test

wheel: $(WHEEL) ## the source distribution and the release wheel that is built from it, in dist/
	@ls -l dist/wengert-*

sdist: | $(TOOLS) ## the source distribution alone
	@$(BIN)/maturin sdist --out dist

lint: $(LINTERS) ## formatting, clippy, ruff, mypy, and the workflows against their schema and for weak spots; warnings as errors
	@echo "==> rustfmt, clippy"
	@cargo fmt --check
	@cargo clippy --locked --all-targets -- -D warnings
	@cargo clippy --locked --all-targets --features python -- -D warnings
	@echo "==> ruff, mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@echo "==> workflows"
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/zizmor --offline --quiet .github

types: $(LINTERS) $(VENV)/.test ## mypy --strict and pyright over the programs of tests/typing, as a user's checker sees the package
	@echo "==> mypy --strict, pyright"
	@$(BIN)/mypy --strict --python-executable $(BIN)/python tests/typing/programs
	@$(BIN)/pyright --pythonpath $(BIN)/python

format: $(LINTERS) ## format Rust and Python
	@cargo fmt
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

operations: build ## regenerate docs/operations.md from the built module and the samples
	@$(BIN)/python tools/operations.py

pictures: $(VENV)/.test ## redraw docs/images, the graph of README.md and the floors of src/lib.rs; README.md's times from benches/results
	@$(BIN)/python tools/pictures.py

stubs: build ## regenerate python/wengert/_core.pyi from the built module
	@$(BIN)/python tools/stubs.py

bench: ## the Rust benchmarks
	@echo "==> cargo bench"
	@cargo bench --locked

budgets: $(VENV)/.test ## instructions per operation of the release wheel against benches/budgets.toml (needs valgrind)
	@$(BIN)/python tools/budgets.py

bench-gpu: $(VENV)/.test ## the adapter's own ceilings, and each GPU kernel against them
	@$(BIN)/python -m benches.gpu

bench-growth: $(VENV)/.peers ## how cost grows with the length of graphs and on short axes, with pictures (beside torch, if installed)
	@$(BIN)/python benches/peers/growth.py

bench-peers: $(VENV)/.peers ## the same work in NumPy, JAX, autograd, micrograd (and torch, if installed)
	@$(BIN)/python benches/peers/run.py

bench-matmul: $(VENV)/.peers ## matrix products over sizes, layouts and dtypes beside torch, NumPy and JAX
	@$(BIN)/python benches/peers/matmul.py

bench-loops: $(VENV)/.peers ## loops over memory beside torch and NumPy: kernels, dtypes, layouts, one and two threads
	@for n in 1 2; do $(BIN)/python benches/peers/loops.py --threads $$n --output benches/results/loops-$$n.md; done

# One page after another: kernels of Jupyter that start at once may choose one port.
docs: $(DOCS_VENV)/.docs ## the documentation site in docs/_build: pages executed, Python and Rust reference
	@$(DOCS_BIN)/python tools/pictures.py --check
	@echo "==> sphinx, every page executed"
	@$(DOCS_BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "==> cargo doc"
	@RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --no-deps
	@rm -rf docs/_build/html/rust
	@cp -r $(CARGO_TARGET_DIR)/doc docs/_build/html/rust
	@echo "==> docs/_build/html/index.html"

clean: ## remove the virtual environment, wheels and the project's own target folder
	@rm -rf $(VENV) $(DOCS_VENV) docs/_build docs/reference docs/results.txt dist target .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find python tests benches tools -name __pycache__ -prune -exec rm -rf {} +
	@rm -f python/wengert/*.so python/wengert/*.pyd

$(VENV)/bin/python:
	@echo "==> creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(TOOLS): | $(VENV)/bin/python
	@echo "==> installing maturin"
	@$(BIN)/pip install --quiet --upgrade pip "maturin>=1.13,<2" "zopfli>=0.2.3"
	@touch $@

$(LINTERS): pyproject.toml | $(TOOLS)
	@echo "==> installing ruff, mypy, pyright and the linters of workflows"
	@$(BIN)/pip install --quiet --group lint
	@touch $@

$(WHEEL): $(SOURCES) | $(TOOLS)
	@echo "==> building the release wheel"
	@mkdir -p dist && rm -f dist/wengert-*
	@# The files of a source distribution are all of one date: without this Cargo would take an older build for theirs.
	@cargo clean --quiet --release --package wengert
	@$(BIN)/maturin build --release --locked --sdist --out dist --interpreter $(BIN)/python
	@$(BIN)/python tools/repack.py dist
	@touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.peers: $(WHEEL)
	$(call install,$(patsubst .%,%,$(notdir $@)))
	@touch $@

# The pages run in an environment of their own: what they import is what a reader has to install.
$(DOCS_VENV)/.docs: $(WHEEL) pyproject.toml
	@echo "==> installing the wheel and Sphinx into $(DOCS_VENV)"
	@test -x $(DOCS_BIN)/python || $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_BIN)/pip install --quiet --upgrade pip
	@$(DOCS_BIN)/pip install --quiet --force-reinstall --no-deps dist/wengert-*.whl
	@$(DOCS_BIN)/pip install --quiet dist/wengert-*.whl --group docs
	@touch $@
