# Copyright The kubelet-eviction Authors.
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#     http://www.apache.org/licenses/LICENSE-2.0
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Everything a person does here, by name. `make help` lists it.

SHELL := /usr/bin/env bash -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

# The minor of Kubernetes, one of those in hack/versions or that of go.mod, which
# is the default. Every go command follows it through GOFLAGS.
K8S ?= $(shell sed -nE 's|^\s+k8s.io/kubernetes v([0-9]+\.[0-9]+)\..*|\1|p' go.mod)
export K8S
export GOFLAGS := $(shell hack/goflags $(K8S) || echo unsupported)
ifeq ($(GOFLAGS),unsupported)
$(error K8S=$(K8S))
endif

# The race detector needs cgo and a C compiler.
RACE ?= $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" > /dev/null && echo -race)
# Random nodes in the differential test.
NODES ?= 2000
# A node image of kind, or a tarball of one.
NODE ?=
BASE ?=
# Which series make verify-patches verifies; all, if none is named.
MINORS ?=
# Which kubelet make demo shows: patched or upstream; and what make demo-guest makes
# short: memory or pressure.
KUBELET ?= patched
SHORTAGE ?= memory

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: kubelet
kubelet: ## Build _output/bin/kubelet with this package in it (minutes at first, then under one). K8S=1.36 for another minor.
	@hack/build-kubelet.sh patched

.PHONY: kubelet-upstream
kubelet-upstream: ## Build _output/bin/kubelet-upstream as it is, for comparison.
	@hack/build-kubelet.sh upstream

.PHONY: kubectl-eviction
kubectl-eviction: ## Build _output/bin/kubectl-eviction, the kubectl plugin that explains, replays and plots.
	@mkdir -p _output/bin
	@CGO_ENABLED=0 go build -trimpath -o _output/bin/kubectl-eviction ./cmd/kubectl-eviction

.PHONY: test
test: ## Run every test that needs no node, and print the conformance counts. K8S=1.36 for another minor.
	@mkdir -p _output
	@# -v makes the tests print their counts; the whole log is kept.
	@if ! go test $(RACE) -timeout=60m -v $(TESTFLAGS) $$(go list ./... | grep -v /test/conformance) > _output/test-$(K8S).log 2>&1 \
	  || ! go test $(RACE) -timeout=60m -v $(TESTFLAGS) ./test/conformance -nodes $(NODES) >> _output/test-$(K8S).log 2>&1 \
	  || ! GOFLAGS= go -C test/contrib test -timeout=60m -v . >> _output/test-$(K8S).log 2>&1 \
	  || ! GOFLAGS= go -C hack/tools test -timeout=60m -v ./... >> _output/test-$(K8S).log 2>&1; then \
	  grep -vE '^(=== |I[0-9]{4} |E[0-9]{4} )' _output/test-$(K8S).log | tail -n 200; echo "test: FAILED, see _output/test-$(K8S).log"; exit 1; fi
	@grep -E '^(ok|conformance:|.*SKIP)' _output/test-$(K8S).log
	@echo "skipped: $$(grep -cE '^ *--- SKIP' _output/test-$(K8S).log || true)"

# What CI runs of the tests against the minors that are not go.mod's: the API on
# Linux alone, and fewer random nodes. make test K8S=1.36 runs all.
MINOR_TESTS := TestExportedAPI/linux|TestDefaults|TestUpstreamUnitTests|TestParseThresholdConfig|TestDifferential
.PHONY: test-minors
test-minors: ## Test against the other minors of hack/versions, in short (minutes). MINORS=1.35 for some.
	@mkdir -p _output
	@for minor in $(or $(MINORS),$(basename $(notdir $(wildcard hack/versions/*.mod)))); do \
	  export GOFLAGS=$$(hack/goflags $$minor); log=_output/test-minor-$$minor.log; \
	  echo "Kubernetes $$(go list -m -f '{{.Version}}' k8s.io/kubernetes)"; \
	  if ! go test -v ./pkg/... ./test/scenarios ./test/kind > $$log 2>&1 \
	    || ! go test -v ./test/conformance -run '$(MINOR_TESTS)' -nodes 200 >> $$log 2>&1; then \
	    grep -vE '^(=== |I[0-9]{4} |E[0-9]{4} )' $$log | tail -n 100; echo "test-minors: FAILED, see $$log"; exit 1; fi; \
	  grep -E '^(ok|conformance:|.*SKIP)' $$log; done

.PHONY: test-long
test-long: ## The same with ten times as many random nodes.
	@$(MAKE) --no-print-directory test NODES=20000

.PHONY: soak
soak: ## Let nodes live 10,000 simulated hours under random load (minutes).
	@go test ./test/soak -count=1 -timeout 180m -v -run TestRandomLoad -hours 10000 | grep -E '^(---|ok|FAIL|panic)|_test.go'

.PHONY: verify-patches
verify-patches: ## Build and test upstream's packages with every prefix of each series of patches. MINORS=1.36 LAST=1 for less.
	@hack/verify-patches.sh $(MINORS)

.PHONY: test-apply
test-apply: ## Try hack/apply on a tree with a vendor folder, in the minor K8S: apply, build, test, revert (minutes).
	@mkdir -p _output
	@hack/test-apply.sh 2>&1 | tee _output/test-apply-$(K8S).log

.PHONY: test-deb
test-deb: kubelet ## Install, upgrade and remove the Debian package in a chroot (root, Debian).
	@hack/deb/test.sh _output/bin/kubelet

.PHONY: test-kind
test-kind: ## Make node images by podman and without an engine, and look into them (root, Debian).
	@cd hack/kind/nodeimage && GOFLAGS= go test ./...
	@hack/kind/test.sh

.PHONY: demo
demo: ## Show an eviction on a sandboxed node (root, Linux). KUBELET=upstream or SHORTAGE=pressure for another.
	@hack/demo.sh $(KUBELET) $(SHORTAGE)

.PHONY: test-e2e
test-e2e: kubelet ## Evict real pods on a sandboxed node (root, Linux; minutes). FOCUS=memory picks specs.
	@EVICTION_E2E=1 go test ./test/e2e_node -v -count=1 -timeout 40m -ginkgo.v -ginkgo.no-color -ginkgo.focus='$(FOCUS)' 2>&1 | tee _output/test-e2e-$(K8S).log

.PHONY: test-e2e-upstream
test-e2e-upstream: ## Run upstream's node e2e eviction specs on a sandboxed node. FOCUS=PriorityPid picks some, KUBELET=upstream the other kubelet.
	@hack/e2e-upstream.sh $(KUBELET) $(FOCUS)

.PHONY: compatibility
compatibility: ## Print what passed with which version, from the logs of what was run.
	@hack/compatibility.sh

.PHONY: fuzz
fuzz: ## Fuzz what parses thresholds, configurations and records, a minute each.
	@for target in FuzzParse FuzzPercentage FuzzFindings; do \
	  go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m ./pkg/kubelet/eviction/threshold; done
	@for target in FuzzRecord FuzzHeartbeat; do \
	  go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m -fuzzminimizetime 1x ./pkg/kubelet/eviction/journal; done
	@for target in FuzzLoad FuzzParseCapacity; do \
	  go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m ./cmd/kubectl-eviction/lint; done

.PHONY: bench
bench: ## Measure a pass beside one of upstream's and print the ratios.
	@go run ./test/bench

.PHONY: bench-node
bench-node: kubelet kubelet-upstream ## Measure both kubelets on a sandboxed node: crossing to decision, to signal, to memory back (root; minutes). ARGS='-times 5'
	@go run ./test/bench_node $(ARGS)

.PHONY: test-guest
test-guest: ## Run what needs cgroup v2 and PSI in an emulated guest (Debian; minutes).
	@hack/guest test ./test/guest

.PHONY: demo-guest
demo-guest: ## The same in an emulated Debian with systemd, cgroup v2 and PSI (ten minutes).
	@hack/guest demo $(KUBELET) $(SHORTAGE)

.PHONY: verify
verify: ## Check format, code, shell, licences, modules, layers, platforms, and verify-patches (minutes; hack/verify.sh CHECK... for some).
	@hack/verify.sh

.PHONY: release
release: ## Build kubelets, commands, Debian packages, bills of materials and checksums for all platforms into _output/release.
	@hack/release.sh

.PHONY: release-check
release-check: ## Build a release again with an empty build cache, and compare byte by byte (long).
	@hack/release.sh check

.PHONY: kind-image
kind-image: ## Put the kubelet into a node image of kind: NODE=kindest/node:v1.37.0, or BASE=rootfs.tar without an engine.
	@if [ -n "$(BASE)" ]; then hack/kind/image.sh --layout "$(BASE)"; else hack/kind/image.sh "$(NODE)"; fi

.PHONY: kind-up
kind-up: ## Bring up a kind cluster with that image and hack/kind/cluster.yaml.
	@kind create cluster --config hack/kind/cluster.yaml --image kindest/node:eviction

.PHONY: clean
clean: ## Remove everything that was built.
	@chmod -R u+w _output 2>/dev/null || true
	@rm -rf _output
