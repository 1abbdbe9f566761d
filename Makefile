# Holdfast. 'make' or 'make help' lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# Where 'make deps' puts Go on a machine that has none, and where Go's own installer puts it: sudo does not look there.
export PATH := $(CURDIR)/.cache/go/bin:$(PATH):/usr/local/go/bin

# All builds, tests and checks use the same flags, so that each package is compiled once, and Go's cache holds for other clones.
# Only the race detector needs cgo.
export GOFLAGS     := -trimpath $(GOFLAGS)
export CGO_ENABLED ?= 0

BIN     := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/holdfast-storage/holdfast/internal/version.Version=$(VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/holdfast
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/holdfast ./cmd/holdfast

.PHONY: kubectl
kubectl: ## build bin/kubectl, for tests and experiments
	cd test/kubectl && go build -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4' -o ../../$(BIN)/kubectl .

.PHONY: deps
deps: ## install what building and the demo need (Debian packages; needs root)
	hack/install-deps

.PHONY: test-deps
test-deps: ## install what building and the tests need (Debian packages; needs root)
	hack/install-deps tests
	hack/vm-kernel

.PHONY: generate
generate: ## regenerate deep copies, CRDs and generated docs
	hack/generate

.PHONY: check-fast
check-fast: ## the fast checks: generated code fresh, modules tidy, format, vet
	hack/check fast

.PHONY: check
check: ## generated code fresh, modules tidy, format, vet, linters, known vulnerabilities
	hack/check

.PHONY: plan-diff
plan-diff: ## compare the plans that the tests of this tree and of BASE make (BASE=COMMIT, WITHOUT=KEY,KEY of the plans' JSON, OPTIONS of test/plandiff)
	hack/plan-diff $(BASE) "$(WITHOUT)" $(OPTIONS)

# The tiers: test/tier says how a test gets into one.
.PHONY: test
test: test-deps check-fast build kubectl bin/demo ## the core tier, what CI runs: unit tests, and each capability once on real systems; at most 40 minutes from nothing (needs root)
	hack/run-tests core

.PHONY: test-full
test-full: test-deps check-fast build kubectl bin/demo ## every test, with the race detector, all cases of all sweeps, chaos and virtual machines; hours, at most 90 minutes a part (needs root)
	hack/run-tests full

.PHONY: test-unit
test-unit: ## the unit tests of the core tier: engine on a simulated world, API server and etcd for real (TIER=full for all)
	hack/run-tests $(or $(TIER),core) unit

.PHONY: test-e2e
test-e2e: build kubectl bin/demo ## the core tier's tests of real systems on hosts made of namespaces (TIER=full: with the race detector, see test-rare for the others; needs root)
	hack/run-tests $(or $(TIER),core) e2e

.PHONY: test-rare
test-rare: build kubectl bin/demo ## the full tier's rare and long tests of real systems, which the core tier leaves out (HALF=1 or 2: a half of them; needs root)
	hack/run-tests full rare$(HALF)

.PHONY: test-kube
test-kube: test-deps build ## the core tier's tests in a real Kubernetes (TIER=full for all; needs root)
	hack/run-tests $(or $(TIER),core) kube

.PHONY: soak
soak: build kubectl ## the leader killed, and everything on all hosts restarted, again and again on real Ceph, with a client's data verified (flags: ROUNDS=30; needs root)
	HOLDFAST_ROUNDS=$(or $(ROUNDS),30) go test -count=1 -v -timeout 180m ./test/e2e -run '^(TestChaos|TestRestartEverything)$$'

.PHONY: bin/demo
bin/demo:
	go build -o $@ ./test/demo

.PHONY: demo
demo: deps build bin/demo ## three hosts on this machine, a real Ceph cluster, data written and read back (needs root)
	$(BIN)/demo up

.PHONY: demo-down
demo-down: bin/demo ## remove everything that 'make demo' made (needs root)
	$(BIN)/demo down

.PHONY: bin/kube-cluster
bin/kube-cluster:
	go build -o $@ ./test/kube/cluster

.PHONY: kube-up
kube-up: test-deps build bin/kube-cluster ## a Kubernetes of three nodes on this machine, with what 'make build' makes in its image; the first time takes 10 minutes (needs root)
	hack/kube-tools
	hack/kube-sidecars
	hack/kube-image
	$(BIN)/kube-cluster up

.PHONY: kube-down
kube-down: bin/kube-cluster ## remove everything that 'make kube-up' made (needs root)
	$(BIN)/kube-cluster down

.PHONY: bench
bench: test-deps build bench-leader ## bring-up times of Ceph and of a GlusterFS volume as ratios to the shortest hand-written scripts, of 12 OSDs to 1, of removing and replacing an OSD to doing it by hand (needs root)
	go run ./test/bench
	go run ./test/bench/gluster
	go run ./test/bench/osds
	go run ./test/bench/repair
	$(MAKE) bench-unchanged

.PHONY: bench-kube
bench-kube: test-deps build ## Ceph in pods beside Ceph on bare hosts: the time to ONLINE, and the operator at rest (needs root)
	hack/kube-tools
	hack/kube-sidecars
	hack/kube-image
	go run ./test/kube/bench

.PHONY: bench-volumes
bench-volumes: test-deps build ## volumes for pods: the time to Ready, and what is written beside Ceph's own clients (needs root)
	hack/kube-tools
	hack/kube-sidecars
	hack/kube-image
	go run ./test/kube/bench/volumes

.PHONY: bench-orch
bench-orch: test-deps build ## 'ceph orch': answers at the agent's socket in a cluster of 1,000 hosts, and what it costs a new cluster and an idle mgr (flags: ORCH='-only socket'; needs root)
	go run ./test/bench/orch $(ORCH)

.PHONY: bench-leader
bench-leader: build ## fail-over after kill -9 of the leader
	go run ./test/bench/leader

.PHONY: bench-unchanged
bench-unchanged: ## the cost of an orchestration without changes: ten clusters, each of 14 daemons on 3 simulated hosts (flags: UNCHANGED='-watch 60s')
	go run ./test/bench/scale -unchanged -hosts 30 -disks 3 -clusters 10 -watch 30s $(UNCHANGED)

.PHONY: bench-scale
bench-scale: ## the cost of 1,000 simulated hosts with 10,000 daemons for the leader (flags: SCALE='-hosts 250')
	go run ./test/bench/scale $(SCALE)
