# Two commands do everything on a fresh machine: `make demo` and `make test`. Each makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
EXAMPLES ?= 20000
SEED ?= 0
GRAPHS ?= 2000
AGAINST ?= HEAD
MUTANTS ?= 100
SELECTION ?= core

.PHONY: demo test test-gpu lint generated fuzz fuzz-gpu fuzz-graphs fuzz-values mutants pythons replay recorded counts bench bench-gpu site clean

$(VENV)/.lean: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.installed: $(VENV)/.lean
	$(BIN)/python -m pip install -q -e '.[cuda,test,lint,onnx]'
	touch $@

demo: $(VENV)/.lean
	$(BIN)/python docs/examples/matmul.py

# with bytecode, even where the environment says none: the tests start many processes, and each imports the package
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS)

test-gpu: $(VENV)/.installed
	$(BIN)/python -m pytest tests/cuda/test_cuda_device.py --need-gpu

lint: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright tir codegen

generated: $(VENV)/.installed
	$(BIN)/python -m tests.tools.generated
	$(BIN)/python docs/course/make.py
	$(BIN)/ruff format -q tir

fuzz: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz.steps --all --steps 12 --examples $(EXAMPLES) --seed $(SEED)

fuzz-gpu: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz.steps --gpu --all --steps 8 --examples $(EXAMPLES) --seed $(SEED)

fuzz-graphs: $(VENV)/.installed
	$(BIN)/python -m tests.random_graphs $(SEED) $$(($(SEED) + $(GRAPHS)))

fuzz-values: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz.values --examples $(EXAMPLES) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.values --family straight --largest 128 --examples $(EXAMPLES) --seed $(SEED)

mutants: $(VENV)/.installed
	$(BIN)/python -m tests.tools.mutants --count $(MUTANTS) --seed $(SEED)

replay: $(VENV)/.installed
	$(BIN)/python -m tests.tools.replay --against $(AGAINST) --jobs $(JOBS)

# the wheel, the README and a part of the tests on every supported Python that is found here; SELECTION=short: a minute for each
pythons: $(VENV)/.installed
	$(BIN)/python -m tests.tools.pythons --selection $(SELECTION)

# the digests of golden/texts, from what the code makes now
recorded: $(VENV)/.installed
	$(BIN)/python -m tests.recorded_texts --jobs $(JOBS)

counts: $(VENV)/.installed
	$(BIN)/python -m benchmarks.counts

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

bench-gpu: $(VENV)/.installed
	$(BIN)/python -m benchmarks.gpu

# the documentation as a site, with notebooks run and a reference of every name, in build/site; a warning is an error, and so is
# one of thirty questions whose page the search does not find
site: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@grep -q 'class="tir-figure"' build/site/primitives.html || { echo 'build/site/primitives.html has no drawings'; exit 1; }
	@! grep -rlE "(src|Src) ?= ?['\"]https?://" build/site --include='*.html' || { echo 'load something from elsewhere'; exit 1; }
	$(BIN)/python docs/site/questions.py build/site

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install -q -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
