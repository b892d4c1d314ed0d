# `make demo` and `make test` do all the set-up themselves: they need only Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo demo-blackbox docs dist test test-fast test-portable lint mutants format bench-async bench-baselines bench-blackbox bench-certificates bench-device bench-engines bench-environments bench-few bench-omnisafe bench-overhead bench-safety bench-scaling clean help
help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 22

# One environment, grown in two steps: what the demo needs, then what the tests need. Each stamp is newer than pyproject.toml when nothing has to be done.
.venv/.demo: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing pcces into .venv (once)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[rl]'
	@touch $@

.venv/.dev: pyproject.toml .venv/.demo
	@echo "installing what the tests need into .venv (once)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[rl,safety,cluster,brax,dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary pybullet -e '.[bullet]' \
		|| echo "there is no wheel of pybullet for this Python: its tests are skipped"
	@touch $@

demo: .venv/.demo  ## train a policy under a cost limit, certify it, and write a report
	@rm -rf runs/demo
	@$(BIN)/pcces train CartSafe-v0 --out runs/demo

demo-blackbox: .venv/.demo  ## a black box: the cost of an inventory under a service level, with certificate and picture
	@$(BIN)/python examples/inventory.py

docs: .venv/.dev   ## the documentation as a site that works offline, site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet && echo "site: site/index.html"

dist: .venv/.dev   ## the wheel and the sdist in dist/, tested in empty environments (minutes)
	@$(BIN)/python tests/distribution.py

test: .venv/.dev   ## all tests
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-fast: .venv/.dev  ## all tests but the slow ones
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow"

test-portable: .venv/.dev  ## the tests on other instruction sets and all installed Pythons (15 minutes each; ONLY=avx2 for one)
	@$(BIN)/python tests/portable.py $(ONLY)

lint: .venv/.dev   ## ruff, mypy, spelling, prose and links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python docs/prose.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --site-dir build/site

mutants: .venv/.dev ## test the tests: a thousand small changes to pcces/core (an hour; docs/contributing/index.md)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check mutmut
	@OMP_NUM_THREADS=1 nice $(BIN)/mutmut run
	@$(BIN)/mutmut results

format: .venv/.dev ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-safety: .venv/.dev  ## speed of the navigation tasks on one core, compared with the original (a minute)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/safety_speed.py

bench-safety-device: .venv/.dev  ## speed of the navigation tasks in JAX, on a GPU if there is one (minutes)
	@$(BIN)/python benchmarks/safety_device.py

# The peers have an environment of their own: pcces must not come to depend on them.
.venv-peers/.done: benchmarks/blackbox/requirements.txt
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@echo "installing the peers into .venv-peers (once)"; .venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench-blackbox: .venv/.demo .venv-peers/.done  ## pcces compared with other constrained optimisers under noise (hours; can be resumed)
	$(BIN)/python -m benchmarks.blackbox.run --solvers pcces
	.venv-peers/bin/python -m benchmarks.blackbox.run --solvers de cobyqa-margin pycma cobyqa nomad
	@$(BIN)/python -m benchmarks.blackbox.table

.venv-few/.done: benchmarks/few/requirements.txt
	@test -x .venv-few/bin/python || $(PYTHON) -m venv .venv-few
	@echo "installing BoTorch, Optuna and pycma into .venv-few (once)"; .venv-few/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench-few: .venv/.demo .venv-few/.done  ## 50 to 500 evaluations: pcces compared with BoTorch, Optuna, pycma and COBYQA (hours; can be resumed)
	$(BIN)/python -m benchmarks.few.run --solvers pcces
	.venv-few/bin/python -m benchmarks.few.run --solvers optuna-tpe pycma cobyqa optuna-gp botorch-scbo botorch-qlognei
	@$(BIN)/python -m benchmarks.few.table

# confseq's wheels end with Python 3.10; what is needed of it is plain Python.
.venv-confseq/.done: .venv/.demo
	@echo "installing confseq into .venv-confseq (once)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .venv-confseq \
		--python-version 3.10 --only-binary :all: --no-deps confseq==0.0.11 multiprocess==0.70.19 dill==0.4.1
	@touch $@

bench-certificates: .venv/.demo .venv-confseq/.done  ## attacks on certificates: rates of false and of missed ones (JOBS=16: half an hour, hours on one core; can be resumed)
	@$(BIN)/python -m benchmarks.certificates.attack --workers $(or $(JOBS),1)
	@$(BIN)/python -m benchmarks.certificates.rates
	@$(BIN)/python -m benchmarks.certificates.widths --confseq .venv-confseq

bench-async: .venv/.demo  ## sixteen workers with evaluations of different durations (half an hour)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/asynchronous.py

bench-baselines: .venv/.dev .venv-peers/.done  ## the baselines: step sizes, OpenES compared with evosax, PPO on simple tasks (an hour; can be resumed)
	@PYTHONPATH=. .venv-peers/bin/python benchmarks/baselines.py evosax
	@$(BIN)/python benchmarks/baselines.py ppo --seeds 3
	@$(BIN)/python benchmarks/baselines.py tune

.venv-omnisafe/.done: benchmarks/omnisafe-requirements.txt
	@test -x .venv-omnisafe/bin/python || $(PYTHON) -m venv .venv-omnisafe
	@echo "installing OmniSafe into .venv-omnisafe (once)"; .venv-omnisafe/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@.venv-omnisafe/bin/python -m pip install --quiet --disable-pip-version-check --no-deps omnisafe==0.5.0
	@touch $@

bench-omnisafe: .venv/.dev .venv-omnisafe/.done  ## PPO-Lagrangian and CPO compared with OmniSafe (twenty minutes; can be resumed)
	@.venv-omnisafe/bin/python benchmarks/omnisafe_peer.py --tasks MountainCarContinuousSafe-v0 --epochs 10 > /dev/null
	@$(BIN)/python benchmarks/baselines.py omnisafe --seeds 3 --epochs 10 --tasks MountainCarContinuousSafe-v0

bench-engines: .venv/.dev  ## environment steps per second on every engine (half an hour)
	@OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/engines.py

bench-scaling: .venv/.dev  ## simulated time of an iteration on thousands of workers (three minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/scaling.py

bench-overhead: .venv-peers/.done  ## overhead of the library, compared with evosax (minutes)
	@PYTHONPATH=. OMP_NUM_THREADS=1 .venv-peers/bin/python benchmarks/overhead.py

bench-environments: .venv/.dev  ## the example environments: PCCES, ppo-lag and cpo with defaults (hours; can be resumed)
	@$(BIN)/python -W ignore -m benchmarks.environments

bench-device: .venv/.dev .venv-peers/.done  ## generations and steps per second, compared with evosax and gymnax (ten minutes)
	@$(BIN)/python benchmarks/device.py

clean:           ## remove what was built
	rm -rf .venv .venv-peers .venv-few .venv-omnisafe .venv-confseq .venv-portable-* build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
