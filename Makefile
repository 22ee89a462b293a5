# Spokelet. "make help" lists the commands.

MAKEFLAGS += --warn-undefined-variables --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
SHELL := /bin/sh

BIN := bin
# The minor version of Kubernetes that tests run on, one of test/kube/versions; empty means the one of test/kube/go.mod.
KUBE_VERSION ?=
# Another one for managed clusters that are not hubs at once; empty means the same.
KUBE_VERSION_MANAGED ?=
# A directory with ready control plane programs; empty means to compile them.
KUBE_ASSETS ?=
KUBE_READY := $(if $(KUBE_ASSETS),$(abspath $(KUBE_ASSETS)))
ifneq ($(and $(KUBE_READY),$(KUBE_VERSION)),)
$(error KUBE_ASSETS names programs of one version and KUBE_VERSION another one: unset one of them)
endif
override KUBE_ASSETS := $(or $(KUBE_READY),$(abspath $(BIN)/kube$(addprefix -,$(KUBE_VERSION))))
export KUBE_ASSETS
ifneq ($(KUBE_VERSION_MANAGED),)
export KUBE_ASSETS_MANAGED := $(abspath $(BIN)/kube-$(KUBE_VERSION_MANAGED))
endif
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
# The commit and its time, for images.
REVISION = $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
CREATED = $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
LDFLAGS := -s -w -X github.com/spokelet/spokelet/internal/version.version=$(VERSION)
# The same settings for programs, tests and the linter, so that each package is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false
GOBUILD := go build -ldflags '$(LDFLAGS)'
# How long one test package may take, so that a hang becomes a stack trace; a package takes a minute or two.
TEST_TIMEOUT := 20m
# Packages at the same time, and tests of a package that run in parallel: most of them wait most of the time, so they
# are more than the processors. Each integration package runs control planes of its own.
TEST_PARALLEL := 3
TEST_PARALLEL_TESTS := 4
# A suite finds its control planes before its tests begin, so the cache of test results does not tell versions apart.
TEST_COUNT := $(if $(KUBE_VERSION)$(KUBE_VERSION_MANAGED),-count 1)
# Further flags for go test, such as TEST_FLAGS='-run Kill -v'.
TEST_FLAGS ?=
# Packages to test. Those that take longest come first, so that none of them runs alone at the end.
LONGEST := lies conversion soak fleet work benchmark crash hubcrash scenarios cluster hubcluster rights migration join storm credentials authors
# Without packages on the command line there is also fuzzing, and the tools and what ships as YAML are tested.
TEST_TOOLS :=
ifeq ($(origin TEST_PACKAGES),undefined)
TEST_TOOLS := fuzz test-tools test-helm test-plugin test-browser test-samples test-ship test-monitoring
endif
TEST_PACKAGES ?= $(addprefix ./test/integration/,$(LONGEST)) ./...
# What "make unit" tests, and the commit with which "make check" compares.
UNIT_PACKAGES ?= ./agent/... ./cmd/... ./csr/... ./hub/... ./internal/... ./lease/... ./manifests/...
CHECK_BASE ?= HEAD
# What "make deflake" repeats: a package, the tests of it, and how often.
PKG ?=
RUN ?= .
COUNT ?= 20
# Further flags, such as -burners 8.
DEFLAKE_FLAGS ?=
# Further flags for the benchmarks: of the agent, of the hub manager, of the hub manager with large fleets, of a flood.
BENCH_FLAGS ?=
BENCH_HUB_FLAGS ?=
BENCH_FLEET_FLAGS ?=
BENCH_FLOOD_FLAGS ?=
# Further flags for the benchmark of the plugin, and where its archives will be.
BENCH_PLUGIN_FLAGS ?=
PLUGIN_URL ?= https://example.com/spokelet
# Further flags for the benchmark of a bad agent.
BENCH_BADCLUSTER_FLAGS ?=
# Further flags for the benchmark of the policies.
BENCH_POLICIES_FLAGS ?=
# Fuzz tests of what strangers write, as package:name, and how long each of them runs.
FUZZ ?= hub/webhook:FuzzConvert hub/webhook:FuzzCarriedFields csr/sign:FuzzJudgeAndSign csr/approve:FuzzJudgeCluster \
	hub/template:FuzzRender agent/work/offline:FuzzDecodeCopy agent/work/offline:FuzzCopy \
	agent/work/manifest:FuzzParseManifest agent/work/feedback:FuzzJSONPath agent/bootstrap:FuzzKubeconfig \
	hub/placement/layout:FuzzPlanOfAnySlices hub/fleet:FuzzAClusterThatStaysIsNotUnselectedBetweenTwoWrites \
	hub/rollout/planner:FuzzMakeIsTotal agent/work/apply:FuzzSecretsAreNotTold \
	internal/decode:FuzzAnObjectIsDecodedOrReplacedByItsMetadata internal/confighash:FuzzAPackedConfigIsTheSame
FUZZ_TIME ?= 10s
# Further flags for the soak.
SOAK_FLAGS ?=
# Further flags for the storm.
STORM_FLAGS ?=
# Further flags for the long tests beside each other.
LONG_FLAGS ?=
# Further flags for the fleet whose API servers lie.
LIES_FLAGS ?=
# Flags for the day of a fleet.
DAY_FLAGS ?= -clusters 100 -addons 3 -lasts 24h -per-hour 120
# Further flags for the fleets.
FLEETS_FLAGS ?=
# The other version of "make skew", a commit; empty is the newest that is at least a week old, else the oldest usable one.
SKEW_BASE ?=
# Further flags for it.
SKEW_FLAGS ?=
# Further flags for the deaths of the hub manager.
HUBCRASH_FLAGS ?=
# Packages whose operators "make mutate" changes, and further flags for it.
MUTATE_PACKAGES ?= csr,csr/issue,csr/approve,csr/sign,lease,internal/confighash,hub/rollout,hub/rollout/planner,hub/template,hub/placement,hub/install,agent/work/manifest,agent/work/status,agent/work/feedback,agent/work/ignore,agent/work/jsonpath,agent/work/apply/ssa,agent/work/apply/merge
MUTATE_FLAGS ?=
# The image of the nodes of "make e2e": the one of "make node-image", or "official" for the one of kind, from a registry.
LOCAL_NODE_IMAGE := spokelet/node:$(shell sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\)$$|\1|p' test/e2e/node-image/go.mod)
NODE_IMAGE ?= $(LOCAL_NODE_IMAGE)
# Further flags for the end-to-end suites, such as E2E_FLAGS='-suites two-clusters -run memory'.
E2E_FLAGS ?=
# Further flags for the pictures of dashboards.
PICTURES_FLAGS ?=
# Images: what stands before their names, their tags and platforms.
IMAGE_REPOSITORY ?= spokelet
IMAGE_TAGS ?= $(VERSION),latest
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64
# Control planes that "make sandbox" starts.
CLUSTERS ?= hub,cluster1

.PHONY: help
help: ## Print this list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## Build the agent and the hub manager into bin/
	@$(GOBUILD) -o $(BIN)/spokelet ./cmd/spokelet
	@$(GOBUILD) -o $(BIN)/spokelet-hub ./cmd/spokelet-hub

.PHONY: image
image: ## Build the images into bin/images, without a container engine (IMAGE_PLATFORMS=linux/amd64 IMAGE_TAGS=v1)
	@cd tools && go build -o ../$(BIN)/image ./image
	@$(BIN)/image --output $(BIN)/images --version $(VERSION) --revision $(REVISION) --created $(CREATED) \
		--repository $(IMAGE_REPOSITORY) --tags $(IMAGE_TAGS) --platforms $(IMAGE_PLATFORMS)

.PHONY: kube
kube: ## Compile etcd, kube-apiserver, kube-controller-manager into bin/kube (KUBE_VERSION=1.33, or KUBE_ASSETS=dir has them)
	@cd test/kube && KUBE_ASSETS=$(KUBE_READY) go run ./build -o $(KUBE_ASSETS) -version '$(KUBE_VERSION)'
ifneq ($(KUBE_VERSION_MANAGED),)
	@cd test/kube && KUBE_ASSETS= go run ./build -o $(KUBE_ASSETS_MANAGED) -version '$(KUBE_VERSION_MANAGED)'
endif

.PHONY: test
test: kube $(TEST_TOOLS) ## Run all tests: unit tests, and integration tests on real control planes
	go test -p $(TEST_PARALLEL) -parallel $(TEST_PARALLEL_TESTS) -timeout $(TEST_TIMEOUT) $(TEST_COUNT) $(TEST_FLAGS) $(TEST_PACKAGES)

.PHONY: unit
unit: ## Run the unit tests, without control planes (UNIT_PACKAGES=./hub/install TEST_FLAGS='-run Held -v')
	go test -p $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $(UNIT_PACKAGES)

# Packages of nested modules are left to "make lint".
.PHONY: check
check: $(BIN)/golangci-lint ## Check what differs from a commit: format, imports, citations, linters (CHECK_BASE=origin/main)
	@wrong=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ -f "$$f" ] && echo "$$f"; done)); \
		[ -z "$$wrong" ] || { echo "run gofmt -w on:"; echo "$$wrong"; exit 1; }
	@red=0; go test ./test/arch ./test/rows/... ./test/reference/... ./test/bugs || red=1; \
	changed=$$( (git diff --name-only --diff-filter=d $(CHECK_BASE) -- '*.go'; git ls-files -o --exclude-standard '*.go') | \
		xargs -r -n 1 dirname | sort -u | while read -r d; do go list -find "./$$d" >/dev/null 2>&1 && echo "./$$d"; done); \
		[ -z "$$changed" ] || GOLANGCI_LINT_CACHE=$${GOLANGCI_LINT_CACHE:-$(CURDIR)/$(BIN)/lint-cache} \
			$(BIN)/golangci-lint run --timeout 30m --allow-parallel-runners $$changed || red=1; \
		exit $$red

.PHONY: house
house: ## Print the size and the shape of the packages (HOUSE_PACKAGES=./hub/...)
	@go run ./test/arch/cmd/house $(HOUSE_PACKAGES)

$(BIN)/golangci-lint: tools/go.mod
	cd tools && go build -o ../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# They read files outside their module, which the cache of test results does not notice.
.PHONY: test-tools
test-tools: ## Test the programs that build and check images
	cd tools && go test -count 1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: test-helm
test-helm: ## Test the charts of add-ons
	cd hub/addon/helm && go test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

# Add-ons as other people write them: modules that import the library for authors.
SAMPLES := test/samples/weather test/samples/uptime

.PHONY: test-samples
test-samples: ## Test the sample add-ons
	for sample in $(SAMPLES); do \
		(cd $$sample && go test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...) || exit 1; \
	done

.PHONY: plugin
plugin: ## Build kubectl-spokelet, the plugin "kubectl spokelet", and what completes it into bin
	cd cmd/kubectl-spokelet && $(GOBUILD) -o ../../$(BIN)/kubectl-spokelet .
	@printf '#!/bin/sh\nexec kubectl-spokelet __complete "$$@"\n' >$(BIN)/kubectl_complete-spokelet
	@chmod +x $(BIN)/kubectl_complete-spokelet

.PHONY: plugin-dist
plugin-dist: ## Build the plugin for five platforms with checksums and a manifest of krew, into bin/plugin (PLUGIN_URL=https://example.com/v1)
	cd cmd/kubectl-spokelet && go run ./dist -to ../../$(BIN)/plugin -version '$(VERSION)' -ldflags '$(LDFLAGS)' -url '$(PLUGIN_URL)'

.PHONY: test-plugin
test-plugin: ## Test the plugin
	cd cmd/kubectl-spokelet && go test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: test-browser
test-browser: ## Test the page of the plugin in a headless Chromium, where there is one in the path
	@for name in chromium chromium-browser google-chrome headless-shell; do command -v $$name >/dev/null && exit 0; done; \
		echo "SKIPPED: there is no Chromium in the path, so that the page of the plugin is not played in a browser"
	cd test/browser && go test -count 1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: page-images
page-images: ## Take the pictures of the page of the plugin for the documents, with a headless Chromium
	cd test/browser && go run ./images -to ../../docs/operations/images

.PHONY: test-ship
test-ship: kube ## Test what ships as YAML: kustomize, the Helm chart, and the commands of the pages about installing
	cd test/ship && go test -count 1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: test-monitoring
test-monitoring: kube ## Test that each alert fires for its fault, on real control planes, with the engine of Prometheus
	cd test/monitoring && go test -count 1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

# Their corpora, in testdata/fuzz, are part of the unit tests, too. Go compiles their packages once more, to watch which
# code an input reaches; its cache keeps them.
.PHONY: fuzz
fuzz: ## Fuzz what reads the input of strangers, ten seconds each (FUZZ=hub/webhook:FuzzConvert FUZZ_TIME=10m)
	go run ./test/fuzz -time $(FUZZ_TIME) $(FUZZ)

.PHONY: deflake
deflake: kube ## Repeat tests under load until one fails (PKG=./test/integration/work RUN=TestCost COUNT=20)
	go run ./test/deflake -pkg "$(PKG)" -run "$(RUN)" -count $(COUNT) $(DEFLAKE_FLAGS)

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check the code with golangci-lint and go vet
	GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache $(BIN)/golangci-lint run --timeout 30m ./...
	cd tools && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../$(BIN)/golangci-lint run --timeout 30m ./...
	cd test/kube && go vet ./build
	cd test/ship && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../$(BIN)/golangci-lint run --timeout 30m ./...
	cd test/monitoring && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../$(BIN)/golangci-lint run --timeout 30m ./...
	cd cmd/kubectl-spokelet && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../$(BIN)/golangci-lint run --timeout 30m ./...
	cd test/browser && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../$(BIN)/golangci-lint run --timeout 30m ./...
	cd hub/addon/helm && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../../$(BIN)/golangci-lint run --timeout 30m ./...
	for sample in $(SAMPLES); do \
		(cd $$sample && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache $(CURDIR)/$(BIN)/golangci-lint run --timeout 30m ./...) || \
			exit 1; \
	done
	cd test/e2e && GOLANGCI_LINT_CACHE=$(CURDIR)/$(BIN)/lint-cache ../../$(BIN)/golangci-lint run --timeout 30m ./...
	cd test/e2e/node-image && go vet ./cmd/pause ./cmd/crictl ./cmd/capruntime

.PHONY: vuln
vuln: ## Check what the images contain for known vulnerabilities (GOVULNDB=file:///folder uses a copy of the database)
	@cd tools && go build -o ../$(BIN)/vuln ./vuln
	@$(BIN)/vuln ./cmd/... ./test/hello

.PHONY: demo
demo: kube build plugin ## Show a hub, three clusters and their add-ons on this machine
	@$(GOBUILD) -o $(BIN)/hello-agent ./test/hello
	@$(GOBUILD) -o $(BIN)/demo ./test/demo
	@$(BIN)/demo

.PHONY: bench
bench: bench-agent bench-hub ## Measure the agent, then the hub manager, against the budgets of the design

.PHONY: bench-agent
bench-agent: kube build ## Measure the agent (BENCH_FLAGS='-works 200 -v')
	go run ./test/bench/cmd/bench $(BENCH_FLAGS)

.PHONY: bench-hub
bench-hub: kube build ## Measure the hub manager with 500 simulated clusters (BENCH_HUB_FLAGS='-size 50x1 -v')
	go run ./test/bench/cmd/hub $(BENCH_HUB_FLAGS)

.PHONY: bench-fleet
bench-fleet: kube build ## Measure it with up to 3,000 clusters x 20 add-ons; hours (BENCH_FLEET_FLAGS='-sizes 100x1,500x1+4 -only install,idle')
	go run ./test/bench/cmd/fleet $(BENCH_FLEET_FLAGS)

.PHONY: bench-plugin
bench-plugin: plugin ## Measure the plugin on a simulated hub (BENCH_PLUGIN_FLAGS='-clusters 500 -rounds 1')
	cd cmd/kubectl-spokelet && go run ./bench -program ../../$(BIN)/kubectl-spokelet $(BENCH_PLUGIN_FLAGS)

.PHONY: bench-policies
bench-policies: kube ## Measure what the admission policies cost a write (BENCH_POLICIES_FLAGS='-rounds 5 -writes 100')
	go run ./test/bench/cmd/policies $(BENCH_POLICIES_FLAGS)

.PHONY: bench-flood
bench-flood: kube build ## Measure hub manager and agent on a hub full of requests (BENCH_FLOOD_FLAGS='-requests 6000 -v')
	go run ./test/bench/cmd/flood $(BENCH_FLOOD_FLAGS)

.PHONY: bench-badcluster
bench-badcluster: kube build ## Measure what other clusters notice of a bad agent (BENCH_BADCLUSTER_FLAGS='-changes 500 -v')
	go run ./test/bench/cmd/badcluster $(BENCH_BADCLUSTER_FLAGS)

.PHONY: soak
soak: kube build ## Watch certificates of a minute rotate under stress, then rollouts (SOAK_FLAGS='-only rotation -seed 7 -v')
	go run ./test/soak/cmd/soak $(SOAK_FLAGS)

.PHONY: storm
storm: kube build ## Edit a hub and a cluster at random, then compare everything (STORM_FLAGS='-seed 7 -lies -calm 20')
	go run ./test/storm/cmd/storm $(STORM_FLAGS)

.PHONY: day
day: ## Play a day of a fleet in one process and in virtual time (DAY_FLAGS='-clusters 1000 -addons 10 -seed 7')
	go test ./test/virtual -count 1 -v -timeout 0 -run TestADayOfAFleet -args $(DAY_FLAGS)

.PHONY: works
works: ## Play a day of works that people write, in virtual time (WORKS_FLAGS='-seed 7 -scenes "the hub is a black hole"')
	go test ./test/virtual -count 1 -v -timeout 0 -run TestADayOfWorks -args $(WORKS_FLAGS)

.PHONY: ways
ways: ## Lead a hub to one state by other routes, and by lies, which must be the same (WAYS_FLAGS='-ways 5000')
	go test ./test/virtual -count 1 -timeout 0 -run "TestTwoWays|TestTwoVersions|TestATemplateAndAProgram|TestLiesDeleteNothing" -args $(or $(WAYS_FLAGS),-ways 500)

.PHONY: lies
lies: kube build ## Play a fleet whose API servers lie to hub manager and agents, one seed a play (LIES_FLAGS='-seed 7 -seeds 1000')
	go run ./test/lies/cmd/lies $(LIES_FLAGS)

.PHONY: long
long: kube build ## Play storm, lies and both soaks beside each other, and see whether all stays flat (LONG_FLAGS='-lasts 1h -seed 7')
	go run ./test/long/cmd/long $(LONG_FLAGS)

.PHONY: fleets
fleets: ## Play a million generated fleets against the decisions of the hub (FLEETS_FLAGS='-seed 7 -fleets 10000')
	go run ./test/fleets/cmd/fleets $(FLEETS_FLAGS)

.PHONY: bugs
bugs: kube ## Put bugs back that were mended, one at a time, and see what notices them; hours (BUGS_FLAGS='-only hub-b')
	go run ./test/bugs/cmd/bugs $(BUGS_FLAGS)

.PHONY: report
report: kube build ## Play the short forms of all these and the benchmarks, and write docs/report.md (REPORT_FLAGS='-runs 2')
	go run ./test/report/cmd/report $(REPORT_FLAGS)

.PHONY: hubcrash
hubcrash: kube ## Kill the hub manager at every write of the life of an add-on, in both ways; half an hour
	go test ./test/integration/hubcrash -count 1 -timeout 3h -v -all $(HUBCRASH_FLAGS)

.PHONY: skew
skew: kube build ## Play this version beside an older one, an upgrade and the way back (SKEW_BASE=commit SKEW_FLAGS='-v')
	go run ./test/skew/cmd/skew -base '$(SKEW_BASE)' $(SKEW_FLAGS)

.PHONY: sandbox
sandbox: kube ## Start bare control planes and print their kubeconfigs (CLUSTERS=hub,cluster1)
	go run ./test/sandbox/cmd/sandbox --clusters $(CLUSTERS)

.PHONY: node-image
node-image: ## Build a node image for kind, without a container registry (root, Docker engine, debootstrap; some minutes)
	@test/e2e/node-image/build.sh $(BIN)/node-image $(LOCAL_NODE_IMAGE)

.PHONY: e2e
e2e: $(if $(filter $(LOCAL_NODE_IMAGE),$(NODE_IMAGE)),node-image) ## Play the end-to-end suites on kind clusters (NODE_IMAGE=official E2E_FLAGS='-run memory')
	@cd test/e2e && go build -o ../../$(BIN)/e2e/e2e ./cmd/e2e
	@cd test/e2e && ../../$(BIN)/e2e/e2e -node-image $(NODE_IMAGE) $(E2E_FLAGS)

.PHONY: rows
rows: ## Write the tests into the tables of docs/reference
	go run ./test/rows/cmd/rows

.PHONY: crds
crds: ## Take the CRDs from the API module again
	go run ./manifests/gen

.PHONY: chart
chart: ## Write the objects of the Helm chart, from the kustomize bases, and the table of its values
	cd test/ship && go run ./generate

# The chart has them, too.
.PHONY: dashboards
dashboards: ## Write the dashboards for Grafana
	go run ./manifests/gen/dashboards

.PHONY: pictures
pictures: kube ## Draw the dashboards for the documentation, from a fleet that plays for 16 minutes (PICTURES_FLAGS='-lasts 10m')
	cd test/monitoring && go run ./pictures $(PICTURES_FLAGS)

.PHONY: generate
generate: crds rows dashboards chart ## Write again all that is generated, and tidy the modules
	go mod tidy
	cd tools && go mod tidy
	cd test/kube && go mod tidy
	cd hub/addon/helm && go mod tidy
	cd cmd/kubectl-spokelet && go mod tidy
	cd test/browser && go mod tidy
	for sample in $(SAMPLES); do (cd $$sample && go mod tidy) || exit 1; done
	cd test/e2e && go mod tidy
	cd test/ship && go mod tidy
	cd test/monitoring && go mod tidy

# It compares the differences to the last commit before and after, so that it also works with changes of one's own.
.PHONY: verify
verify: ## Generate, and fail when that changed anything
	@before=$$(git status --porcelain; git diff); $(MAKE) --no-print-directory generate; \
	after=$$(git status --porcelain; git diff); \
	if [ "$$before" != "$$after" ]; then git status --short; echo "make generate changed these files: commit them"; exit 1; fi

.PHONY: mutate
mutate: ## Change one operator at a time and see whether unit tests notice (MUTATE_PACKAGES=csr/issue,lease MUTATE_FLAGS='-v')
	@cd tools && go build -o ../$(BIN)/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	go run ./test/mutate/cmd/mutate -tool $(abspath $(BIN))/gremlins -packages $(MUTATE_PACKAGES) $(MUTATE_FLAGS)

.PHONY: clean
clean: ## Remove everything that was built, and what killed runs of "make e2e" left behind
	@test/e2e/clean.sh $(BIN)/e2e
	rm -rf $(BIN)
