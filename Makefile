# `make` lists the targets. None needs anything set up: DynamoDB Local is found or started, see
# internal/dynamolocal. demo and test-short need nothing but Go.

GOLANGCI_LINT_VERSION := 2.15.0
TEST_TIMEOUT          ?= 20m
COMPARE_SEED          ?= 1
SOAK_COMMITS          ?= 1000000
SOAK_DELIVERIES       ?= 10000000
SOAK_EVENTS           ?= 100000
SOAK_SEED             ?= 1
CHAOS_MINUTES         ?= 3
CHAOS_SEED            ?= 1
SCALE                 ?=
STRESS_TEST_COUNT     ?= 10
STRESS_TIMEOUT        ?= 60m

# go.work joins these modules.
MODULES  := . cmd/millrace examples test
PACKAGES := $(patsubst %,./%/...,$(filter-out .,$(MODULES)))
PACKAGES := ./... $(PACKAGES)

# go run would hide the exit code of the emulator and not pass SIGTERM to it. So it is built.
EMULATOR := bin/dynamolocal

# The installed golangci-lint if it is the pinned version, as building it takes minutes.
golangci-lint = $(shell \
	for bin in "$$(command -v golangci-lint)" "$$(go env GOPATH)/bin/golangci-lint"; do \
		if [ -x "$$bin" ] && "$$bin" version 2>/dev/null | grep -qF ' $(GOLANGCI_LINT_VERSION) '; then \
			echo "$$bin"; exit; \
		fi; \
	done; \
	echo go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_LINT_VERSION))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Watermill's TestReconnect has a data race of its own, so this one package is compiled without the
# detector. All packages of this repository are compiled with it.
RACE := -race -gcflags=github.com/ThreeDotsLabs/watermill/pubsub/tests=-race=false

# Otherwise each of the hundred test programs sleeps for a second before it ends.
export GORACE := atexit_sleep_ms=0

# Watermill's suite publishes ten thousand messages within a minute, so nothing else may run or be
# compiled at the same time. Its short form publishes some hundred.
SUITE := ./test/suite/...

# The store and the Pub/Sub, which make test also runs on DynamoDB Local, and tests that kill
# processes. As in the other lists, packages that take long come first.
CORE := ./subscriber ./test/chaos ./journal ./repository/... ./subscriber/... ./publisher/...

# Tests that need DynamoDB Local. Most compare it with dynamotest.
ON_LOCAL := ./dynamotest/internal/compare ./dynamotest/internal/engine ./dynamotest/internal/expression \
	./dynamotest/internal/value ./internal/dynamolocal/dynamolocaltest ./test/chaos

# These take long, so they begin first.
SLOW := ./test/cmd/sim ./test/soak

# The other packages that use a database. make test runs them on dynamotest, and make test-all on
# DynamoDB Local.
REST := ./examples/orderhistory/story ./examples/console ./journal/archive ./test/soak ./examples/orderhistory \
	./cmd/millrace/... ./process/... ./examples/... ./internal/checkpoint ./internal/tables ./projection/... \
	./journal/compress ./journal/encrypt ./aggregate/protobuf ./test/sqlsuite ./dynamotest/internal/conformance

# make test-all runs these without the race detector: the order history and pages in a browser, the
# costs of operations, and the code of the documentation, many small packages that take long to
# compile. The tests of ./console and of the other examples serve pages with the detector.
UNRACED := ./examples/console ./examples/orderhistory/... ./examples/planningpoker/web ./examples/internal/browsertest \
	./test/costs ./test/docs/...

# All packages except those above.
ON_DYNAMOTEST = $(SLOW) $(filter-out $(shell go list $(SUITE) $(ON_LOCAL) $(SLOW) $(UNRACED) ./test/interop/...),$(shell go list $(PACKAGES)))

.PHONY: chromium
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
	echo "The tests of the examples' pages need Chromium: install it (Debian: apt-get install chromium). make test-short does without." >&2; exit 1

# Many tests wait, so more packages run at a time than there are processors. make lint vets.
DYNAMOTEST_TEST := env -u MILLRACE_DYNAMODB_ENDPOINT go test $(RACE) -vet=off -p 3 -timeout $(TEST_TIMEOUT)

# Two packages at a time: the emulator serves a few hundred to a thousand writes a second, and more
# packages would make each other time out. The race detector runs on dynamotest only.
LOCAL_TEST := go test -vet=off -p 2 -timeout $(TEST_TIMEOUT)

.PHONY: test
test: chromium $(EMULATOR) ## Run the tests: on dynamotest with the race detector, store and Pub/Sub also on DynamoDB Local (10 minutes)
	$(DYNAMOTEST_TEST) -short $(SUITE)
	$(DYNAMOTEST_TEST) $(ON_DYNAMOTEST)
	$(EMULATOR) -- $(LOCAL_TEST) $(CORE) $(ON_LOCAL)

.PHONY: test-all
test-all: chromium $(EMULATOR) ## Run what make test leaves out: documentation, costs, Watermill's whole suite, the other packages on DynamoDB Local, interop (10 minutes)
	$(EMULATOR) -- $(LOCAL_TEST) $(SUITE)
	$(EMULATOR) -- $(LOCAL_TEST) $(REST)
	env -u MILLRACE_DYNAMODB_ENDPOINT go test -vet=off -timeout $(TEST_TIMEOUT) ./test/costs ./test/docs/...
	env -u MILLRACE_DYNAMODB_ENDPOINT GOWORK=off go test -run '^Example' -vet=off ./... # outside the workspace
	env -u MILLRACE_DYNAMODB_ENDPOINT go test -vet=off -run Many ./console -console.many=100000
	$(MAKE) interop

.PHONY: test-short
test-short: ## Run the tests that need no DynamoDB Local, on dynamotest
	env -u MILLRACE_DYNAMODB_ENDPOINT go test -short $(PACKAGES)

# Many of these tests wait, so more run at a time than there are processors.
.PHONY: stress
stress: $(EMULATOR) ## Run Watermill's suite many times side by side, on both (STRESS_TEST_COUNT)
	env -u MILLRACE_DYNAMODB_ENDPOINT STRESS_TEST_COUNT=$(STRESS_TEST_COUNT) \
		go test $(RACE) -tags stress -run Stress -parallel 8 -timeout $(STRESS_TIMEOUT) ./test/suite
	STRESS_TEST_COUNT=$(STRESS_TEST_COUNT) $(EMULATOR) -- \
		go test $(RACE) -tags stress -run Stress -parallel 8 -timeout $(STRESS_TIMEOUT) ./test/suite

.PHONY: compare
compare: $(EMULATOR) ## Compare dynamotest with DynamoDB Local by 100,000 random operations
	$(EMULATOR) -- go test -timeout $(TEST_TIMEOUT) -run TestSameAsDynamoDBLocal -v ./dynamotest/internal/compare \
		-compare.operations=100000 -compare.seed=$(COMPARE_SEED)

.PHONY: soak
soak: ## Commit a million times and deliver ten million times amid faults, rebuild a read model of 100,000 events, and print what was lost (SOAK_COMMITS, SOAK_DELIVERIES, SOAK_EVENTS, SOAK_SEED)
	@go build -o bin/ ./test/cmd/soak ./test/cmd/sim
	@bin/soak -commits $(SOAK_COMMITS) -seed $(SOAK_SEED)
	@bin/sim -deliveries $(SOAK_DELIVERIES) -seed $(SOAK_SEED)
	@go test -count=1 -timeout $(STRESS_TIMEOUT) -run TestWorlds ./test/cmd/sim -sim.all
	@go test -count=1 -timeout $(STRESS_TIMEOUT) -run TestAReadModelIsBuiltAnew -v ./projection/readmodel -rebuild.events=$(SOAK_EVENTS)

.PHONY: chaos
chaos: $(EMULATOR) ## Kill consumer processes at random, and print what was lost (CHAOS_MINUTES, CHAOS_SEED)
	@go build -o bin/chaos ./test/cmd/chaos
	$(EMULATOR) -- bin/chaos -minutes $(CHAOS_MINUTES) -seed $(CHAOS_SEED)

# Most goroutines of a subscriber make one request, for which their stack has to grow. With this
# setting they begin with a larger stack.
.PHONY: scale
scale: ## Measure 10,000 events/s on 256 shards, for 3 groups of 50 members, with the throughput of DynamoDB's partitions (10 minutes; SCALE sets another world)
	GODEBUG=adaptivestackstart=1 go test -count=1 -timeout $(STRESS_TIMEOUT) -run 'TestScale$$' -v ./test/scale -scale.full $(SCALE)

.PHONY: lint
lint: ## Check style, common mistakes, formatting of all modules, and the words of comments and docs
	@set -e; lint="$(golangci-lint)"; for module in $(MODULES); do \
		echo "$$lint run ($$module)"; (cd $$module && GOGC=400 $$lint run ./...); \
	done
	go run ./test/cmd/prose

# The version of the root that cmd/millrace requires may have no tag yet. Only releasecheck can tidy it.
.PHONY: tidy
tidy: ## Complete go.mod and go.sum of all modules
	@set -e; for module in $(filter-out cmd/millrace,$(MODULES)); do (cd $$module && GOWORK=off go mod tidy); done
	go run ./test/cmd/releasecheck -tidy

.PHONY: release-check
release-check: ## Rehearse a release: fetch, compile, run and install it as a stranger does
	go run ./test/cmd/releasecheck

.PHONY: bench
bench: $(EMULATOR) ## Compare with the bare SDK doing the same work, one `ratio NAME VALUE` a line
	$(EMULATOR) -- go run ./test/bench
	env -u MILLRACE_DYNAMODB_ENDPOINT go run ./examples/planningpoker load

.PHONY: pictures
pictures: chromium ## Take the pictures of the pages of examples for the README and the docs
	go test -count=1 -run TestPicture ./examples/planningpoker/web -picture $(CURDIR)/docs/images/planningpoker.png
	go test -count=1 -run TestPicture ./examples/orderhistory -picture $(CURDIR)/docs/images/orderhistory.png
	go test -count=1 -run TestPicture ./examples/console -picture $(CURDIR)/docs/images

# Fetches event-store-adapter-js by its lock file, from the registry that npm is configured for.
.PHONY: interop
interop: $(EMULATOR) ## Share tables with event-store-adapter-js, both ways (needs Node 20)
	@cmp -s test/interop/package-lock.json test/interop/node_modules/.fetched || { \
		npm --prefix test/interop ci && cp test/interop/package-lock.json test/interop/node_modules/.fetched; }
	MILLRACE_INTEROP=1 $(EMULATOR) -- go test -count=1 -timeout 5m -v ./test/interop

.PHONY: demo
demo: ## Run the order history over its REST API, with faults, and check every order
	go run ./examples/orderhistory story

.PHONY: dynamodb-local
dynamodb-local: $(EMULATOR) ## Run DynamoDB Local until interrupted, and print how to reach it
	$(EMULATOR)

# Always built, since the go command knows what has changed.
.PHONY: $(EMULATOR)
$(EMULATOR):
	@go build -o $@ ./test/cmd/dynamolocal
