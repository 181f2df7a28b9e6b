#!/usr/bin/env bash

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

# Runs eviction specs of upstream's node e2e suite, unmodified, on a sandboxed
# node with our kubelet or upstream's, and prints a table of what came of each.
#
#   hack/e2e-upstream.sh [patched|upstream] [FOCUS]
#
# FOCUS is a part of a spec's name; without one all of them run, which takes two
# hours. Logs and JUnit files are kept in _output/e2e-upstream.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
flavour=${1:-patched}
focus=${2:-}
case "${flavour}" in
  patched) kubelet=_output/bin/kubelet ;;
  upstream) kubelet=_output/bin/kubelet-upstream ;;
  *) echo "usage: hack/e2e-upstream.sh [patched|upstream] [FOCUS]" >&2; exit 2 ;;
esac
[ -x "${kubelet}" ] || hack/build-kubelet.sh "${flavour}"
hack/sandbox/build.sh agnhost e2e_node.test

# The eviction specs of test/e2e_node/eviction_test.go and
# system_node_critical_test.go, Kubernetes v1.37.2.
specs=(
  PriorityPidEvictionOrdering LocalStorageCapacityIsolationEviction PriorityMemoryEvictionOrdering
  PriorityMemoryEvictionOrderingPodLevelResources MemoryAllocatableEviction MemoryAllocatableEvictionPodLevelResources
  InodeEviction LocalStorageEviction LocalStorageSoftEviction
  LocalStorageSoftEvictionNotOverwriteTerminationGracePeriodSeconds PriorityLocalStorageEvictionOrdering SystemNodeCriticalPod
)
# These pull every image of upstream's list, which the sandbox's registry has
# only a few of, so they run only when FOCUS names them.
[[ "${focus}" != *ImageGC* ]] || specs=(ImageGCNoEviction ImageGCTerminatedPodsContainersCleanup)
results=$PWD/_output/e2e-upstream/${flavour}
mkdir -p "${results}"

node() { hack/node -n e2e-upstream "$@"; }
trap 'node down' EXIT

table=()
failures=0
for spec in "${specs[@]}"; do
  case "${spec}" in *"${focus}"*) ;; *) continue ;; esac
  echo "Running ${spec} with ${flavour} kubelet"
  node up --kubelet "${kubelet}" --runtime-only
  begin=${SECONDS}
  if node e2e "\\] ${spec} " "${results}/${spec}" > "${results}/${spec}.log" 2>&1; then outcome=passed; else outcome=FAILED; failures=$((failures + 1)); fi
  # A focus that matches nothing passes too.
  ran=$(sed -nE 's/^Ran ([0-9]+) of .*/\1/p' "${results}/${spec}.log" | tail -n 1)
  if [ "${ran:-0}" = 0 ]; then outcome=FAILED; failures=$((failures + 1)); fi
  table+=("$(printf '%-66s %-7s %2s spec(s) %5s s' "${spec}" "${outcome}" "${ran:-0}" "$((SECONDS - begin))")")
  echo "${table[-1]}"
  node down
done
[ ${#table[@]} -gt 0 ] || { echo "no spec is named like ${focus}; there are: ${specs[*]}" >&2; exit 2; }
echo
echo "$("${kubelet}" --version), upstream's node e2e suite:"
printf '%s\n' "${table[@]}"
exit "${failures}"
