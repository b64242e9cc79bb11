# Two commands do everything: `make demo` and `make test`. Each installs what it needs into .venv and node_modules.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
FAULTS ?= all
SEED ?= 1
COUNT ?= 200
USER_STAMP := $(VENV)/.seatrial-user
DEV_STAMP := $(VENV)/.seatrial-dev
# A boto3 that is older than what the wheel needs: the functions of a trial bring the operations that it lacks.
OLD_BOTO3 := $(CURDIR)/$(VENV)/old-boto3
# Clients of OpenAI's API that the gate does without.
OPENAI_CLIENTS := $(VENV)/openai-clients
# The extra `quality` with lm-eval: 700 MB that the gate does without.
SUITES := $(VENV)/suites
LOCKS := pyproject.toml uv.lock package.json package-lock.json tests/browser/package-lock.json scripts/cdk.sh scripts/install.sh scripts/build_charts.mjs

CDK_CONTEXT = -c "environment=$(ENV)" $(if $(ENDPOINT),-c "endpoint=$(ENDPOINT)")

# An environment keeps the Python that it was made with: another one that is asked for needs one of its own.
ifeq ($(origin PYTHON)$(filter clean help,$(MAKECMDGOALS)),command line)
ifneq ($(wildcard $(BIN)/python),)
VERSION_OF = $(shell $(1) -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>/dev/null)
ifneq ($(call VERSION_OF,$(PYTHON)),$(call VERSION_OF,$(BIN)/python))
$(error $(VENV) has Python $(call VERSION_OF,$(BIN)/python), $(PYTHON) is $(or $(call VERSION_OF,$(PYTHON)),missing): give another environment (VENV=.venv-other), or make clean)
endif
endif
endif

export PATH := $(CURDIR)/$(BIN):$(PATH)
# With this variable Python compiles aws-cdk-lib anew in every process: 4 s of CPU for each synthesis.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo synth diff deploy environment test test-aws clean-aws test-random test-pythons test-flaky test-updates test-failures test-matrix test-recipes test-clients test-suites test-mutants mutants data-age renew check lint scoreboard bench bench-load-client bench-gpu check-security release lock clean

help: ## Show this text.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

install: $(USER_STAMP) ## Make .venv with everything a user needs: seatrial, node, npx, cdk.

$(USER_STAMP): $(LOCKS)
	@sh scripts/install.sh "$(PYTHON)" "$(VENV)" "$(UV_VERSION)" --no-dev
	@touch $@

$(DEV_STAMP): $(LOCKS)
	@sh scripts/install.sh "$(PYTHON)" "$(VENV)" "$(UV_VERSION)"
	@touch $(USER_STAMP) $@

demo: $(USER_STAMP) ## Plan, deploy, try, roll back and destroy an endpoint on this machine (VERBOSE=1 shows all output).
	@$(BIN)/seatrial demo $(if $(VERBOSE),--verbose)

synth: environment $(USER_STAMP) ## Synthesize the stacks of an environment: make synth ENV=prod (ENDPOINT=chat for one endpoint).
	@$(BIN)/cdk synth --quiet $(CDK_CONTEXT) $(CDK_ARGS)

diff: environment $(USER_STAMP) ## Compare the stacks of an environment with those in the account: make diff ENV=prod.
	@$(BIN)/cdk diff $(CDK_CONTEXT) $(CDK_ARGS)

# One endpoint's trial is shown while it runs; those of a whole environment run at the same time, eight at most.
deploy: environment $(USER_STAMP) ## Deploy the stacks of an environment: make deploy ENV=prod (ENDPOINT=chat for one endpoint and its trial).
ifdef ENDPOINT
	@$(BIN)/seatrial deploy $(ENDPOINT) -e $(ENV) $(if $(CDK_ARGS),-- $(CDK_ARGS))
else
	@$(BIN)/seatrial deploy endpoints -e $(ENV) $(if $(CDK_ARGS),-- $(CDK_ARGS))
endif

environment:
	@test -n "$(ENV)" || { echo "name the environment: make $(firstword $(MAKECMDGOALS)) ENV=prod" >&2; exit 2; }

scoreboard: $(DEV_STAMP) ## Write docs/explanation/accuracy.md from the committed results of the planner's validation.
	@$(BIN)/python -m benchmarks.planner_accuracy.scoreboard --write

test: $(DEV_STAMP) ## Run the test suite in six processes: most wait for deployments.
	@$(BIN)/pytest --numprocesses 6 --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

test-aws: environment $(DEV_STAMP) ## Run the acceptance suite in your account, priced and asked first: make test-aws ENV=sandbox (SMOKE=1 for ten questions without an endpoint; ARGS="--budget-usd 20").
	@$(BIN)/python -m tests.acceptance.account run "$(ENV)" $(if $(SMOKE),--smoke) $(ARGS)

clean-aws: environment $(DEV_STAMP) ## Remove what killed runs of test-aws left: make clean-aws ENV=sandbox (RUN=ID for one run).
	@$(BIN)/python -m tests.acceptance.account remove "$(ENV)" --run "$(RUN)" $(ARGS)

test-random: $(DEV_STAMP) ## Run the property tests with new examples; the others draw the same ones each time.
	@$(BIN)/pytest --numprocesses 2 --hypothesis-profile random -m hypothesis $(PYTEST_ARGS)

test-pythons: $(DEV_STAMP) ## Run a quick part on every other supported Python of this machine (ARGS=--newest for one).
	@$(BIN)/python scripts/other_pythons.py $(ARGS)

test-flaky: $(DEV_STAMP) ## Run the tests that depend on time 20 times while all cores are busy.
	@$(BIN)/python scripts/under_load.py $(BIN)/pytest -m timing --times 20 --numprocesses 2 --dist loadscope $(PYTEST_ARGS)

test-updates: $(DEV_STAMP) ## Update an endpoint under load in every way, also those that the gate leaves out.
	@SEATRIAL_ALL_UPDATES=1 $(BIN)/pytest tests/e2e/test_updates.py $(PYTEST_ARGS)

test-failures: $(DEV_STAMP) $(OLD_BOTO3) ## Update an endpoint under load while AWS fails in each way that can be switched on, and while functions die.
	@SEATRIAL_ALL_FAILURES=1 SEATRIAL_FAULTS=$(FAULTS) SEATRIAL_OLD_BOTO3=$(OLD_BOTO3) \
		$(BIN)/pytest tests/e2e/test_failures.py tests/e2e/test_lost_requests.py tests/e2e/test_interrupt.py \
			tests/acceptance_run tests/e2e/test_updates.py $(PYTEST_ARGS)

$(OLD_BOTO3): $(DEV_STAMP)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --target $@ boto3==1.34.0 botocore==1.34.0
	@touch $@

test-recipes: $(DEV_STAMP) ## Compare weights of 16, 8 and 4 bits on the embedded AWS.
	@SEATRIAL_ALL_RECIPES=1 $(BIN)/pytest tests/e2e/test_compare.py $(PYTEST_ARGS)

test-clients: $(DEV_STAMP) $(OPENAI_CLIENTS) ## Ask an endpoint of the embedded AWS with more clients of OpenAI's API: LangChain, LiteLLM.
	@SEATRIAL_OPENAI_CLIENTS=$(CURDIR)/$(OPENAI_CLIENTS)/bin/python \
		$(BIN)/pytest packages/seatrial-laptop/tests/laptop/aws/runtime/test_openai_clients.py $(PYTEST_ARGS)

$(OPENAI_CLIENTS): $(DEV_STAMP)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $@
	@$(BIN)/uv pip install --quiet --python $@/bin/python langchain-openai==1.7.4 litellm==1.110.2
	@touch $@

test-suites: $(DEV_STAMP) $(SUITES) ## Measure suites of quality with lm-eval itself: GSM8K and IFEval with questions of ours, a task of one's own.
	@SEATRIAL_SUITES=$(CURDIR)/$(SUITES)/bin/python $(BIN)/pytest tests/quality/test_suites.py $(PYTEST_ARGS)

$(SUITES): $(DEV_STAMP)
	@UV_PROJECT_ENVIRONMENT=$(CURDIR)/$@ $(BIN)/uv sync --quiet --locked --no-dev --extra quality --python $(BIN)/python
	@touch $@

data-age: $(DEV_STAMP) ## Tell how old each table of the catalog is, what renews it, and which is older than 90 days (exit 1).
	@$(BIN)/python scripts/data_age.py $(TODAY)

renew: $(DEV_STAMP) ## Renew a table of the catalog from its source: make renew TABLE=parsers (ARGS=--write to write it).
	@$(BIN)/python scripts/renew.py $(TABLE) $(ARGS)

test-matrix: $(DEV_STAMP) ## Plan, synthesize and judge every configuration of the matrix of options; deploy, update and destroy 20 on the embedded AWS.
	@SEATRIAL_MATRIX=1 $(BIN)/pytest --numprocesses 2 tests/matrix tests/acceptance/test_adapters.py $(PYTEST_ARGS)

test-mutants: $(DEV_STAMP) ## Write one wrong line after another, and tell which of them the nearest tests don't notice.
	@$(BIN)/python -m tests.mutations.run $(ARGS)

mutants: $(DEV_STAMP) ## Draw mutants of what decides, and tell which of them the nearest tests don't notice (SEED=1 COUNT=200).
	@$(BIN)/python -m tests.mutations.run --draw $(COUNT) --seed $(SEED) $(ARGS)

lint: $(DEV_STAMP) ## Format, lint, types and layers.
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check-security: $(DEV_STAMP) ## Check the templates of every environment: rule book, cfn-lint and checkov.
	@sh scripts/check_security.sh

check: lint test ## Everything that a change must pass.

bench: $(DEV_STAMP) ## Measure speed and memory (benchmarks/).
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bench-load-client: $(DEV_STAMP) ## Load clients side by side: Seatrial, boto3, aiohttp, and what else is installed.
	@$(BIN)/python -m benchmarks.load_client.run

bench-gpu: $(DEV_STAMP) ## Check the planner on the GPU at hand with vLLM and dummy weights: make bench-gpu MODELS=llama-3.1-8b (SECONDS=900 ARGS="--runs 1,2").
	@$(BIN)/python -m benchmarks.gpu $(or $(SECONDS),900) $(or $(MODELS),llama-3.1-8b) $(ARGS)

release: $(USER_STAMP) ## Build what a release publishes into dist/: wheels, sdists, bill of materials, SHA256SUMS (TAG=v0.1.0 checks the versions).
	@sh scripts/release.sh "$${TAG:-}" # read by the shell alone: make would expand a name

lock: ## Resolve the dependencies anew; export requirements.txt, and with hashes what a team's repository installs.
	@$(BIN)/uv lock
	@$(BIN)/uv export --quiet --frozen --no-dev --extra cdk --extra local --extra mcp --extra stage --no-hashes --no-annotate --no-header --output-file requirements.txt
	@$(BIN)/uv export --quiet --frozen --no-dev --extra cdk --extra node --no-emit-workspace --no-annotate --no-header --output-file seatrial/repository/requirements.txt

clean: ## Stop the embedded AWS and remove everything that was made.
	@if [ -x $(BIN)/seatrial ]; then $(BIN)/seatrial local down --quiet || true; \
		$(BIN)/seatrial local down --quiet --state .seatrial/demo/local || true; fi
	@rm -rf $(VENV) node_modules tests/browser/node_modules cdk.out .seatrial .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
