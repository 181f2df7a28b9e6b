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

# Applies every prefix of a series to a pristine source, from the package alone
# to the whole series, builds what was touched and all that imports it in the
# kubelet, and runs the unit tests of the touched packages: upstream's own and
# those that the patches bring.
#
#   hack/verify-patches.sh [MINOR]...    1.36, say; all of patches/ if none is named
#
# It takes minutes for each prefix. LAST=1 verifies the longest prefix alone. A test
# that fails is tried three times more by itself, and named: some of upstream's own
# fail now and then on a busy machine, by removing a folder that the kubelet under
# test still writes to.

set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${root}"
minors=("$@")
if [ ${#minors[@]} -eq 0 ]; then
  for series in patches/v*; do minors+=("${series#patches/v}"); done
fi

# tests FLAG... runs go test, and what has failed again.
tests() {
  local log=_output/verify/test.log failed
  if ! go test "$@" > "${log}" 2>&1; then
    failed=$(sed -nE 's/^--- FAIL: ([^ /]+) .*/\1/p' "${log}" | sort -u | paste -sd '|' -)
    # What does not compile, panics or takes too long fails at once.
    if [ -z "${failed}" ] || grep -qE '^(panic:|FAIL.*\[(build|setup) failed\])' "${log}" \
      || ! go test -count=3 -run "^(${failed})\$" "$@" >> "${log}" 2>&1; then
      grep -vE '^[IWE][0-9]{4} ' "${log}" | tail -n 100
      return 1
    fi
    echo "failed once, and passed three times alone: ${failed}"
  fi
  sed -n '/^ok/p' "${log}"
}

# verify MINOR runs in a subshell of its own, with the GOFLAGS of the minor.
verify() {
  export GOFLAGS
  GOFLAGS=$(hack/goflags "$1")
  local base version source copy modfile patches n packages began
  # As the kubelet is built, so that what was compiled for it serves here as well.
  export CGO_ENABLED=0
  local flags=(-trimpath "-tags=selinux,notest,grpcnotrace")
  base=$(tr ' ' '\n' <<< "${GOFLAGS}" | sed -n 's/^-modfile=//p')
  base=${base:-go.mod}
  go mod download k8s.io/kubernetes
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  source=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
  copy=_output/verify/${version}
  modfile=_output/verify/${version}.mod
  # hack/apply compares a copy that is there with upstream's source.
  if [ -e "${copy}/.kubelet-eviction" ] && ! hack/apply --revert "${copy}" > /dev/null; then
    rm -rf "${copy}"
  fi
  if [ ! -d "${copy}" ]; then
    mkdir -p _output/verify
    rm -rf "${copy}.part"
    cp -r "${source}" "${copy}.part"
    chmod -R u+w "${copy}.part"
    mv "${copy}.part" "${copy}"
  fi
  cp "${base}" "${modfile}"
  cp "${base%.mod}.sum" "${modfile%.mod}.sum"
  printf '\nreplace k8s.io/kubernetes => ./%s\n' "${copy}" >> "${modfile}"

  patches=$(sed '/^ *#/d; /^ *$/d' "patches/v$1/series" | wc -l)
  for n in $(seq "$([ -n "${LAST:-}" ] && echo "${patches}" || echo 0)" "${patches}"); do
    began=${SECONDS}
    hack/apply --patches "${n}" "${copy}" > /dev/null
    # Upstream's tests of the eviction package itself went with it; the shim of
    # test/conformance runs them.
    mapfile -t packages < <(awk '$2 != "-" { print $3 }' "${copy}/.kubelet-eviction/files" | xargs -n 1 dirname | sort -u | sed 's#^#k8s.io/kubernetes/#')
    go build "${flags[@]}" -modfile="${modfile}" "${packages[@]}" k8s.io/kubernetes/cmd/kubelet/app
    tests "${flags[@]}" -modfile="${modfile}" "${packages[@]}"
    # The package alone has no tests in a tree; every patch touches one that has.
    if [ "${n}" -gt 0 ] && ! grep -q '^ok' _output/verify/test.log; then
      echo "patches/v$1: no test ran with ${n} patches" >&2
      return 1
    fi
    hack/apply --revert "${copy}" > /dev/null
    echo "patches/v$1: Kubernetes ${version} with ${n} of ${patches} patches: ok ($((SECONDS - began)) s)"
  done
}

for minor in "${minors[@]}"; do
  [ -e "patches/v${minor}/series" ] || { sed -n '/^# Applies/,/^# It takes/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; echo "there is no patches/v${minor}/series" >&2; exit 1; }
  mkdir -p _output
  (verify "${minor}") 2>&1 | tee "_output/verify-patches-${minor}.log"
done
