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

# Tries hack/apply on a tree as Kubernetes has it: git, and a vendor folder that
# nothing is added to. test/apply tries it on small trees in every state.
#
#   hack/test-apply.sh     of the minor in K8S
#
# The tree is the module source. Its staging modules are not in there, so that it
# gets the published ones, and the vendor folder that they make. Then the patched
# tree must build a kubelet and pass tests with -mod=vendor, and after --revert git
# sees no change.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$(pwd)
goflags=$(hack/goflags "${K8S:-}")
sums=$(tr ' ' '\n' <<< "${goflags}" | sed -n 's/^-modfile=\(.*\)[.]mod$/\1.sum/p')
sums=${sums:-${root}/go.sum}
version=$(GOFLAGS=${goflags} go list -m -f '{{.Version}}' k8s.io/kubernetes)
GOFLAGS=${goflags} go mod download k8s.io/kubernetes
source=$(GOFLAGS=${goflags} go list -m -f '{{.Dir}}' k8s.io/kubernetes)
tree=${root}/_output/apply/${version}

echo "Making a tree of Kubernetes ${version} with its vendor folder"
rm -rf "${tree}"
mkdir -p "${tree%/*}"
cp -r "${source}" "${tree}"
chmod -R u+w "${tree}"
export GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=mod
(
  cd "${tree}"
  # Their sums are those that this repository has.
  edits=()
  while IFS= read -r module; do
    edits+=(-replace="${module}=${module}@v0.${version#v1.}")
  done < <(sed -nE 's#^\s+(k8s\.io/[a-z-]+) => \./staging/.*#\1#p' go.mod)
  go mod edit "${edits[@]}"
  sort -u -o go.sum go.sum "${sums}"
  # -e: the module source lacks what other programs than the kubelet need.
  go list -e -deps -test ./cmd/kubelet ./pkg/kubelet/... > /dev/null 2>&1
  go mod vendor -e > /dev/null 2>&1
  git init -q .
  git add --all --force
  git -c user.name=test -c user.email=test@kubelet-eviction.invalid commit -q -m pristine
)

clean() {
  local changes
  changes=$(git -C "${tree}" status --porcelain --ignored)
  [ -z "${changes}" ] || { echo "FAIL: $1: git sees changes:"$'\n'"${changes}" >&2; exit 1; }
  echo "ok: $1, git sees no change"
}

hack/apply --check "${tree}"
clean "after --check"

hack/apply "${tree}"
changes=$(git -C "${tree}" status --porcelain --untracked-files=all)
if grep -v '^[AMDR]  ' <<< "${changes}"; then
  echo "FAIL: not everything was added to git" >&2
  exit 1
fi
if grep ' vendor/' <<< "${changes}"; then
  echo "FAIL: vendor has changed" >&2
  exit 1
fi
(
  cd "${tree}"
  go build -mod=vendor -trimpath -tags=selinux,notest,grpcnotrace -ldflags='-s -w' -o "${root}/_output/apply/kubelet" ./cmd/kubelet
  go test -mod=vendor -trimpath -tags=selinux,notest,grpcnotrace -run 'Evict|Mountpoint|FreeUnusedImages' ./pkg/kubelet ./pkg/kubelet/eviction/... ./pkg/kubelet/images | grep -v 'no test files'
)
grep -qa EvictionConcurrentKills _output/apply/kubelet || { echo "FAIL: the kubelet does not have the package" >&2; exit 1; }
echo "ok: kubelet and tests with -mod=vendor"

hack/apply --revert "${tree}"
clean "after --revert"
rm -rf "${tree}" _output/apply/kubelet
echo "hack/apply: Kubernetes ${version}: ok"
