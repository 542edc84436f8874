# `make` lists the targets. None needs anything set up: DynamoDB Local is found or started, see
# internal/dynamolocal. check, test, demo and test-short need nothing but Go.

TEST_TIMEOUT          ?= 20m
COMPARE_SEED          ?= 1
SOAK_COMMITS          ?= 1000000
SOAK_DELIVERIES       ?= 400000
SOAK_EVENTS           ?= 100000
SOAK_SEED             ?= 1
CHAOS_MINUTES         ?= 3
BROKER_EVENTS ?= 100000
CHAOS_SEED            ?= 1
SCALE                 ?=
PEERS                 ?=
PROOF                 ?=
STRESS_TEST_COUNT     ?= 10
STRESS_TIMEOUT        ?= 60m

# go.work joins these modules.
MODULES  := . cmd/millrace examples test
PACKAGES := $(patsubst %,./%/...,$(filter-out .,$(MODULES)))
PACKAGES := ./... $(PACKAGES)

# go run would hide the exit code of the emulator and not pass SIGTERM to it. So it is built.
EMULATOR := bin/dynamolocal

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# test/cmd/check lists the phases and says what they need.
.PHONY: check
check: ## Run all that a change must pass, except what needs tools that are missing (25 minutes)
	go run ./test/cmd/check

.PHONY: test
test: ## Run the tests alone (25 minutes)
	go run ./test/cmd/check suite dynamotest local rest suite-all others many interop

.PHONY: test-short
test-short: ## Run the short tests, on dynamotest
	env -u MILLRACE_DYNAMODB_ENDPOINT go test -short $(PACKAGES)

# As test/cmd/check does.
RACE := -race -gcflags=github.com/ThreeDotsLabs/watermill/pubsub/tests=-race=false

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
soak: ## Commit a million times and deliver 400,000 times amid faults, rebuild a read model of 100,000 events, and print what was lost (SOAK_COMMITS, SOAK_DELIVERIES, SOAK_EVENTS, SOAK_SEED)
	@go build -o bin/ ./test/cmd/soak ./test/cmd/sim
	@bin/soak -commits $(SOAK_COMMITS) -seed $(SOAK_SEED)
	@bin/sim -deliveries $(SOAK_DELIVERIES) -seed $(SOAK_SEED)
	@go test -count=1 -timeout $(STRESS_TIMEOUT) -run TestWorlds ./test/cmd/sim -sim.all
	@go test -count=1 -timeout $(STRESS_TIMEOUT) -run TestAReadModelIsBuiltAnew -v ./projection/readmodel -rebuild.events=$(SOAK_EVENTS)

.PHONY: chaos
brokers: ## Forward 100,000 events to each broker, while processes are killed (BROKER_EVENTS)
	MILLRACE_FORWARD_EVENTS=$(BROKER_EVENTS) go test -count=1 -timeout 4h -v ./test/brokers | grep -E '^ *(---|forward_test|ok|FAIL|Error|Messages)'

chaos: $(EMULATOR) ## Kill consumer processes at random, and print what was lost (CHAOS_MINUTES, CHAOS_SEED)
	@go build -o bin/chaos ./test/cmd/chaos
	$(EMULATOR) -- bin/chaos -minutes $(CHAOS_MINUTES) -seed $(CHAOS_SEED)

# Most goroutines of a subscriber make one request, for which their stack has to grow. With this
# setting they begin with a larger stack.
.PHONY: scale
scale: ## Measure 10,000 events/s on 256 shards, for 3 groups of 50 members, with the throughput of DynamoDB's partitions (10 minutes; SCALE sets another world)
	GODEBUG=adaptivestackstart=1 go test -count=1 -timeout $(STRESS_TIMEOUT) -run 'TestScale$$|TestHowMany' -v ./test/scale -scale.full $(SCALE)

.PHONY: api
api: ## Write the lists of exported declarations in api, which a test compares with the code
	go test ./test/docs -run TestTheSurfaceIsAsListed -api.update

.PHONY: lint
lint: ## Check style, common mistakes, formatting of all modules, and the words of comments and docs
	go run ./test/cmd/check -noskip lint prose

# The version of the root that cmd/millrace requires may have no tag yet. Only releasecheck can tidy it.
.PHONY: tidy
tidy: ## Complete go.mod and go.sum of all modules
	@set -e; for module in $(filter-out cmd/millrace,$(MODULES)); do (cd $$module && GOWORK=off go mod tidy); done
	go run ./test/cmd/releasecheck -tidy

.PHONY: release-check
release-check: ## Rehearse a release: fetch, compile, run and install it as a stranger does
	go run ./test/cmd/check -noskip release

.PHONY: bench
bench: $(EMULATOR) ## Compare with the bare SDK doing the same work, one `ratio NAME VALUE` a line
	$(EMULATOR) -- go run ./test/bench
	env -u MILLRACE_DYNAMODB_ENDPOINT go run ./examples/planningpoker load

.PHONY: bench-peers
bench-peers: $(EMULATOR) test/peers/node_modules/.fetched ## Do the same work with event-store-adapter-js, castore and both layouts: round trips, units, times (needs Node 20; PEERS has flags)
	$(EMULATOR) -- go run ./test/peers $(PEERS)

# go run would not pass SIGTERM on, and the tables would stay.
.PHONY: aws-proof
aws-proof: ## Run on DynamoDB in your AWS account, and report what emulators cannot show (costs about $5, asks first; PROOF has flags)
	@go build -o bin/awsproof ./test/cmd/awsproof
	@bin/awsproof $(PROOF)

# As test/cmd/check does for make interop.
test/peers/node_modules/.fetched: test/peers/package-lock.json
	cd test/peers && npm ci
	cp $< $@

.PHONY: site
site: ## Build the documentation as a static site with a search, in bin/site
	@go run ./test/cmd/site

.PHONY: pictures
pictures: ## Take the pictures of the pages of examples for the README and the docs
	go test -count=1 -v -run TestPicture ./examples/planningpoker/web -picture $(CURDIR)/docs/images/planningpoker.png
	go test -count=1 -v -run TestPicture ./examples/orderhistory -picture $(CURDIR)/docs/images/orderhistory.png
	go test -count=1 -v -run TestPicture ./examples/console -picture $(CURDIR)/docs/images

.PHONY: interop
interop: ## Share tables with event-store-adapter-js, both ways (needs Node 20)
	go run ./test/cmd/check -noskip interop

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
