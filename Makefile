# The front door: `make help` lists what there is. Every target installs what it needs first (tools/setup).
PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)
MOLLY := $(BUILD)/molly
FUZZ_SECONDS ?= 60
export TSAN_OPTIONS ?= suppressions=$(CURDIR)/tests/tsan.supp
.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## this list
	@echo 'Molly: one control plane between your apps and language models.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'PRESET=release|dev|asan|tsan|clang chooses the build (release), JOBS=N how many compilers run at once ($(JOBS)).'

.PHONY: build
build: ## install what is missing, then build the binary: build/release/molly
	@tools/setup run
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@cmake --build $(BUILD) --parallel $(JOBS) --target molly

# Ninja configures again by itself whenever a CMake file changes.
$(BUILD)/build.ninja:
	@cmake --preset $(PRESET)

.PHONY: run
run: build ## build, then start Molly on 127.0.0.1 and print how to use it (ARGS="..." goes to molly serve)
	@exec $(MOLLY) serve $(ARGS)

.PHONY: test
test: ## build everything and run the tests (ARGS="-R net" goes to ctest)
	@tools/setup run test
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@cmake --build $(BUILD) --parallel $(JOBS)
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error $(ARGS)

.PHONY: check
check: ## what CI runs: format, house rules, second compiler, lint of changed files, then all tests
	@tools/check

.PHONY: check-deep
check-deep: ## the slow checks: lint of every file, sanitizers, long fuzzing
	@tools/check deep

.PHONY: bench
bench: ## run one benchmark, for example: make bench NAME=gateway
	@tools/setup run bench
	@tools/bench $(NAME)

.PHONY: fuzz
fuzz: ## let each fuzzer look for crashes for FUZZ_SECONDS (60)
	@tools/setup run fuzz
	@tools/fuzz $(FUZZ_SECONDS)

.PHONY: clean
clean: ## remove what was built (node_modules and the downloaded headers stay)
	rm -rf build
