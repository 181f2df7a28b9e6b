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

# Prints what passed with which version of Kubernetes, as the table in
# docs/compatibility.md and README.md: from what make test or make test-minors, make
# verify-patches, make test-apply and make test-e2e have left in _output, of each
# minor. What was not run has a dash.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# found FILE SCRIPT prints what sed finds in a log, or a dash.
found() {
  local said=
  [ ! -e "$1" ] || said=$(sed -nE "$2" "$1" | sort -u | paste -sd ';' | sed 's/;/, /g')
  echo "${said:--}"
}

echo '| Kubernetes | exported API | upstream'"'"'s unit tests | random nodes as upstream | patches, each prefix | applied, built and reverted | specs on a real node |'
echo '|---|---|---|---|---|---|---|'
for series in $(printf '%s\n' patches/v* | sort -V); do
  minor=${series#patches/v}
  version=$(GOFLAGS=$(hack/goflags "${minor}") go list -m -f '{{.Version}}' k8s.io/kubernetes)
  # What make test left, or else the shorter make test-minors.
  log=_output/test-${minor}.log
  [ -e "${log}" ] || log=_output/test-minor-${minor}.log
  printf '| %s | %s | %s | %s | %s | %s | %s |\n' "${version}" \
    "$(found "${log}" 's/^conformance: API (.*)/\1/p')" \
    "$(found "${log}" "s/^conformance: upstream's unit tests ([0-9/]+), 0 skipped(.*)/\1\2/p")" \
    "$(found "${log}" 's/^conformance: differential nodes ([0-9]+).*/\1/p')" \
    "$(found "_output/verify-patches-${minor}.log" 's/.* with ([0-9]+) of [0-9]+ patches: ok.*/\1/p')" \
    "$(found "_output/test-apply-${minor}.log" 's/^hack\/apply: .*: (ok)$/\1/p')" \
    "$(found "_output/test-e2e-${minor}.log" 's/^(SUCCESS|FAIL)! -- ([0-9]+) Passed \| ([0-9]+) Failed.*/\2 passed, \3 failed/p')"
done
