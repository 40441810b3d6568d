# Tidemark. `make help` explains every target. All of them can be repeated, and do their own set-up on a Debian that has
# root and Go.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The user's own cluster instead of the local one: a context of kubectl, and an image that its nodes can pull.
CONTEXT ?=
IMAGE ?=
NAMESPACE ?= tidemark-system
RUNS ?= 10
FIRST ?= 1
SEEDS ?= 2000
STEPS ?= 600
DURATION ?= 1h
SEED ?= 0
KEEP ?=
export CONTEXT IMAGE NAMESPACE RUNS

LAB := hack/lab
export KUBEBUILDER_ASSETS := $(CURDIR)/$(LAB)/bin
GOTEST ?= go test
TESTFLAGS ?= -race -timeout 20m

##@ Develop

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables: CONTEXT=name uses that kubectl context instead of the local cluster, and needs IMAGE=registry/tidemark:tag;\nNAMESPACE (%s) is where the operator goes; RUNS (%s) is how often bench-failover repeats.\n' '$(NAMESPACE)' '$(RUNS)'

.PHONY: generate
generate: ## write generated Go code (deep copies, codecs)
	hack/generate.sh code

.PHONY: manifests
manifests: lab ## write CRD and roles, also into the chart, and what follows from the chart: its README, config, dist/install.yaml
	hack/generate.sh manifests

.PHONY: fmt
fmt: ## gofmt everything
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

.PHONY: vet
vet: ## go vet, with the e2e tests and the mutants
	CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' go vet -tags e2e,mutants ./...

.PHONY: lint
lint: ## golangci-lint, at a pinned version that is built once
	hack/lint.sh

.PHONY: verify
verify: lab ## regenerate in a copy and fail on a diff; gofmt, go vet, go mod tidy
	hack/verify.sh

.PHONY: build
build: ## operator, replica and kubectl plugin, into bin; with that in the PATH there is kubectl tidemark
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/ ./cmd/manager ./cmd/replica ./cmd/kubectl-tidemark
	install -m 755 cmd/kubectl-tidemark/kubectl_complete-tidemark bin/

.PHONY: image
image: ## one image with both binaries, without Docker; a running local cluster gets it at once
	hack/image.sh

##@ Test

.PHONY: test
test: lab ## unit, scenario and API server tests, with the race detector
	@hack/need.sh gcc:gcc /usr/include/stdlib.h:libc6-dev ip:iproute2 nft:nftables
	@kafka=$$(hack/kafka.sh try); [ -d "$$kafka" ] || echo "skipping test/kafka: $$kafka"; \
	TIDEMARK_KAFKA=$$kafka $(GOTEST) $(TESTFLAGS) ./...
	cd hack/bench && $(GOTEST) $(TESTFLAGS) ./...
	cd test/alerts && $(GOTEST) -timeout 20m ./...

.PHONY: kafka
kafka: ## the log's files against Apache Kafka itself: its tools read ours, its brokers serve ours, we serve theirs
	@hack/need.sh gcc:gcc /usr/include/stdlib.h:libc6-dev
	TIDEMARK_KAFKA=$$(hack/kafka.sh try) $(GOTEST) $(TESTFLAGS) ./test/kafka -count 1 -v

.PHONY: sim
sim: ## simulated partitions, every step judged: SEEDS=2000 seeds of STEPS=600 steps, from seed FIRST=1 on
	go test ./internal/sim -run '^TestSimulation$$' -count 1 -v -timeout 0 -sim.first=$(FIRST) -sim.seeds=$(SEEDS) -sim.steps=$(STEPS)

.PHONY: explore
explore: ## every state of small partitions, within the bounds of internal/explore/README.md; minutes
	hack/explore.sh

.PHONY: mutants
mutants: ## take every safety rule away in turn, and show what misses it
	go test -tags mutants -count 1 -v ./internal/guard -run '^TestGate$$' | grep -v '^=== '
	go test -tags mutants -count 1 ./internal/sim ./internal/explore ./internal/story/... ./pkg/replica/core

.PHONY: pictures
pictures: ## draw the stories of docs/failures.md again
	go test -tags mutants ./internal/story/picture -run Current -rewrite

.PHONY: nemesis
nemesis: lab ## real processes under kills, pauses, cuts and lost volumes: DURATION=1h SEED=0 (0 draws one) KEEP=directory for a failure
	@hack/need.sh gcc:gcc /usr/include/stdlib.h:libc6-dev ip:iproute2 nft:nftables
	nice -n 5 $(GOTEST) ./test/processes -run '^TestNemesis$$' -count 1 -v -timeout 0 -nemesis.duration=$(DURATION) -nemesis.seed=$(SEED) -nemesis.keep=$(KEEP)

.PHONY: e2e
e2e: cluster-up ## end-to-end tests on the local three-node cluster
	hack/e2e.sh

.PHONY: bench
bench: ## Go benchmarks, with allocations
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-system
bench-system: ## three replicas on loopback, beside what the disk and a bare copy do: ARGS='-full' for Kafka and NATS too; hack/bench/README.md
	hack/bench.sh $(ARGS)

.PHONY: bench-scale
bench-scale: lab ## the operator with 100 and 1,000 partitions, on a real API server with simulated replicas: ARGS='-sizes 5000 -lease 60s'; docs/benchmarks/scale.md
	go build -o bin/scale/ ./cmd/manager ./hack/scale
	KUBEBUILDER_ASSETS=$(CURDIR)/hack/lab/bin bin/scale/scale -manager bin/scale/manager $(ARGS)

.PHONY: bench-failover
bench-failover: cluster-up ## time without acknowledgements after process kill, pod deletion and power cut: median and max
	hack/e2e.sh bench

##@ Run

.PHONY: lab
lab: ## programs of the local Kubernetes; the first time this compiles Kubernetes (5 minutes)
	@$(LAB)/build.sh

.PHONY: cluster-up
cluster-up: lab ## start the local three-node Kubernetes, with the image on it
	hack/image.sh
	$(LAB)/cluster.sh up

.PHONY: cluster-down
cluster-down: ## stop it and remove every trace of it
	$(LAB)/cluster.sh down

.PHONY: install
install: ## install the CRD only
	hack/deploy.sh crd

.PHONY: deploy
deploy: ## install or upgrade the operator with its Helm chart
	hack/deploy.sh

.PHONY: demo
demo: ## the whole story: cluster, install, produce with kcat, kill the leader, nothing lost
	hack/demo.sh

.PHONY: demo-down
demo-down: ## remove what the demo left; the local cluster too
	hack/demo.sh down
