# `make help` lists the targets. Set-up that a fresh Debian machine needs (an engine, base images, a C compiler for the
# race detector) is done by the targets that need it when they run as root; elsewhere they say what they do without.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION := $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' internal/version/version.go)
# Without Go the program is built in a container (see build).
GO      := $(shell command -v go)
ARCH    := $(if $(GO),$(shell go env GOARCH))
BIN     := $(CURDIR)/bin

FUZZTIME  ?= 20000x
BENCH     ?= .
BENCHTIME ?= 1s
ROUNDS    ?= 20
CALLS     ?= 2000

# Static, free of this machine's paths, and the same bytes from the same sources: the images' digests rely on it.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w'

# With an engine the suites test real sandboxes. Without one they say that they are skipped, unless it is required.
export MCP_AGENTS_TEST_IMAGE_CODEX ?= mcp-agents/codex:$(VERSION)
export MCP_AGENTS_TEST_IMAGE_CLAUDE ?= mcp-agents/claude:$(VERSION)
export MCP_AGENTS_TEST_BIN ?= $(BIN)

# $(call with_engine,WITH,WITHOUT): one shell command for each case. A required engine that is absent is a failure.
define with_engine
if .ci/engine.sh; then $(1); \
elif [[ "$${MCP_AGENTS_REQUIRE_ENGINE:-}" == 1 ]]; then echo "an engine is required (MCP_AGENTS_REQUIRE_ENGINE=1)" >&2; exit 1; \
else $(2); fi
endef

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

.PHONY: inits
inits: # what the program carries to build images from; part of it under the build tag embedinit
	@mkdir -p images/init
	@for arch in amd64 arm64; do GOOS=linux GOARCH=$$arch $(GO_BUILD) -o images/init/sandbox-init-linux-$$arch ./cmd/sandbox-init; done

.PHONY: build
ifneq ($(GO),)
build: inits ## build the programs for this machine and, statically, for Linux into bin/
	@echo "building $(VERSION) into bin/" >&2
	@mkdir -p bin
	@$(GO_BUILD) -tags embedinit -o bin/ ./cmd/...
	@GOOS=linux GOARCH=$(ARCH) $(GO_BUILD) -tags embedinit -o bin/mcp-agents-linux-$(ARCH) ./cmd/mcp-agents
	@cp images/init/sandbox-init-linux-$(ARCH) bin/
else
build: front-end
	@mkdir -p bin
	@box=$$(docker create mcp-agents:$(VERSION)); docker cp -q "$$box:/usr/local/bin/mcp-agents" bin/ 2>/dev/null || \
	  docker cp "$$box:/usr/local/bin/mcp-agents" bin/; docker rm "$$box" >/dev/null
	@echo "bin/mcp-agents is for Linux, from the image mcp-agents:$(VERSION): there is no Go here" >&2
endif

.PHONY: front-end
front-end: # the image mcp-agents; with an engine alone
	@images/build.sh front-end $(VERSION)

.PHONY: base-images
base-images: ## find, pull or make the base images
	@.ci/engine.sh
	@for name in BASE NODE_BASE GO_BASE; do printf '%-10s %s\n' "$$name" "$$(images/base/ensure.sh "$$name")"; done

.PHONY: images
ifneq ($(GO),)
images: build ## build the images whose inputs changed: mcp-agents, mcp-agents/codex and mcp-agents/claude
	@.ci/engine.sh
	@images/build.sh codex $(VERSION)
	@images/build.sh claude $(VERSION)
	@images/build.sh front-end $(VERSION)
else
images: build
	@images/build.sh codex $(VERSION)
	@images/build.sh claude $(VERSION)
endif

.PHONY: dist
dist: build ## put programs for every platform, the images as archives, and checksums into dist/
	@$(call with_engine,$(MAKE) images && .ci/dist.sh $(VERSION) images,\
	  echo "dist: no engine: programs only" >&2; .ci/dist.sh $(VERSION))

# Apart from the others: the browser and its fonts are 0.7 GB that only --provider browser needs, and a first `make demo`
# or `make test` should not wait for them.
.PHONY: images-browser
images-browser: build ## build mcp-agents/chrome-devtools and mcp-agents/chromium where their inputs changed
	@.ci/engine.sh
	@images/build.sh chrome-devtools $(VERSION)
	@images/build.sh chromium $(VERSION)

.PHONY: demo
demo: build ## show the whole thing working, offline, with a scripted model
	@$(call with_engine,\
	  $(MAKE) images && bin/mcp-agents demo,\
	  echo "demo: no engine: using the local runtime (no isolation of files)" >&2; \
	  images/codex/fetch.sh bin/codex && PATH="$(BIN)/codex/bin:$$PATH" MCP_AGENTS_RUNTIME=local bin/mcp-agents demo)

.PHONY: demo-browser
demo-browser: build ## show a real browser in a container at work on a page of this machine, offline
	@$(call with_engine,\
	  if $(MAKE) images-browser; then bin/mcp-agents demo browser; else echo "demo: failed: the images cannot be built"; exit 1; fi,\
	  echo "demo: failed: a browser in a container needs an engine"; exit 1)

.PHONY: test-browser
test-browser: export MCP_AGENTS_REQUIRE_BROWSER = 1
test-browser: export MCP_AGENTS_TEST_IMAGE_CHROME_DEVTOOLS ?= mcp-agents/chrome-devtools:$(VERSION)
test-browser: export MCP_AGENTS_TEST_IMAGE_CHROMIUM ?= mcp-agents/chromium:$(VERSION)
test-browser: images-browser ## run the tests with the real browser, in containers
	@go test -count=1 -timeout 10m ./internal/provider/browser/lease/dockerbox
	@go test -count=1 -timeout 10m ./internal/e2e/acceptance -run '^TestBrowser'

.PHONY: test-compose
test-compose: build ## start each service of compose.yaml with docker compose, as a client does
	@.ci/engine.sh
	@$(MAKE) images
	@compose=$$(.ci/compose.sh) && MCP_AGENTS_REQUIRE_ENGINE=1 MCP_AGENTS_TEST_COMPOSE=$$compose \
	  go test -count=1 -timeout 10m ./internal/e2e/acceptance -run '^TestCompose'

.PHONY: test
test: build ## run every suite: the unit tier, then the system tier, with an engine where one can be had
	@$(call with_engine,$(MAKE) images,echo "test: no engine: the docker suites are skipped; the local runtime is tested" >&2)
	@echo "go vet ./..." >&2
	@go vet ./...
	@.ci/test.sh

.PHONY: test-unit
test-unit: ## run the unit tier: every package but those that run the built program, with the race detector
	@.ci/test.sh unit

.PHONY: test-system
test-system: build ## run the system tier: the built program, on both runtimes, one package at a time (MCP_AGENTS_FULL=1: all of it)
	@$(call with_engine,$(MAKE) images,echo "test: no engine: the docker suites are skipped; the local runtime is tested" >&2)
	@.ci/test.sh system

.PHONY: ci-harness
ci-harness: build ## run the pipelines of docs/examples here, against the scripted model; ends with ci-harness: ok
	@.ci/engine.sh
	@$(MAKE) images
	@go run ./internal/tools/ciharness

.PHONY: contract
contract: build ## run the tests that hold what users rely on; ends with contract: N/M
	@$(call with_engine,$(MAKE) images,echo "contract: no engine: the docker suites are skipped" >&2)
	@go run ./internal/tools/contract -count=1 -timeout 15m

.PHONY: lint
lint: ## check format, vet, staticcheck, known vulnerabilities, and that every platform compiles
	@.ci/lint.sh

.PHONY: house
house: ## print the tree (packages, lines, layers, import arrows) and check the rules of layout and language
	@go run ./internal/tools/house

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (default 20000x: that many inputs)
	@.ci/fuzz.sh $(FUZZTIME)

.PHONY: faults
faults: build ## make every fault ROUNDS times and print what it left (default 20)
	@$(call with_engine,$(MAKE) images,echo "faults: no engine: on the local runtime only" >&2)
	@MCP_AGENTS_FULL=1 go test ./internal/e2e/acceptance -run '^TestFaults$$' -rounds $(ROUNDS) -slack 2s -parallel 2 -count=1 -v -timeout $$(( $(ROUNDS) * 6 + 10 ))m

.PHONY: soak
soak: build ## play CALLS calls of Codex over one connection on each runtime and print what was left (default 2000)
	@$(call with_engine,$(MAKE) images,echo "soak: no engine: on the local runtime only" >&2)
	@go test ./internal/e2e/codex -run '^TestSoak$$' -soak $(CALLS) -count=1 -v -timeout $$(( $(CALLS) / 50 + 10 ))m

.PHONY: soak-sandbox
soak-sandbox: build ## use sandboxes at random ROUNDS times on each runtime and look for leaks (try 1000)
	@$(call with_engine,$(MAKE) images,echo "soak-sandbox: no engine: on the local runtime only" >&2)
	@go test ./internal/e2e/acceptance -run '^TestSoakSandbox$$' -soak $(ROUNDS) -count=1 -v -timeout $$(( $(ROUNDS) / 20 + 10 ))m

.PHONY: bench
bench: build ## run the benchmarks (BENCH=regexp BENCHTIME=1s), then what a sandbox costs beside the same thing done bare
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...
	@$(call with_engine,$(MAKE) images images-browser && go run ./internal/tools/bench,echo "bench: no engine: nothing to compare with" >&2)

.PHONY: clean
clean: ## remove bin/ and dist/ (images stay: docker rmi mcp-agents mcp-agents/codex)
	rm -rf bin dist images/init
