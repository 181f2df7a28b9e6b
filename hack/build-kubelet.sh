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

# Builds a static kubelet for this machine's Go platform (or GOOS and GOARCH).
#
#   hack/build-kubelet.sh patched [OUTPUT]    with this package in place of upstream's
#   hack/build-kubelet.sh upstream [OUTPUT]   as it is, for comparison
#
# Both are built from the k8s.io/kubernetes that go.mod requires, or the module
# file of the minor in K8S, in the same way. The patched one is built from a copy
# of its source below _output, which hack/apply has patched.

set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${root}"

flavour=${1:-}
case "${flavour}" in
  patched)  output=${2:-_output/bin/kubelet} ;;
  upstream) output=${2:-_output/bin/kubelet-upstream} ;;
  *) sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed -n '/^Builds/,/patched\.$/p' >&2; exit 2 ;;
esac

export GOFLAGS
GOFLAGS=$(hack/goflags "${K8S:-}")
base=$(go env GOFLAGS | tr ' ' '\n' | sed -n 's/^-modfile=//p')
base=${base:-go.mod}
go mod download k8s.io/kubernetes
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
source=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
read -r commit tree seconds <<< "$(hack/commit)"
# The time of the commit, so that the same commit always gives the same binary.
date=$(date -u -d "@${seconds}" +%Y-%m-%dT%H:%M:%SZ)

# patched_source makes a patched copy of the source. The copy is made once a
# version; it is renamed into place when it is whole, so that an interrupted one
# is never used.
patched_source() {
  local copy=$1
  if [ -e "${copy}/.kubelet-eviction" ] && ! hack/apply --revert "${copy}" > /dev/null; then
    rm -rf "${copy}"
  fi
  if [ ! -d "${copy}" ]; then
    echo "Copying the source of Kubernetes ${version} to ${copy}"
    rm -rf "${copy}.part"
    mkdir -p "$(dirname "${copy}")"
    cp -r "${source}" "${copy}.part"
    chmod -R u+w "${copy}.part"
    mv "${copy}.part" "${copy}"
  fi
  hack/apply "${copy}"
}

modfile=${base}
gitversion=${version}
if [ "${flavour}" = patched ]; then
  copy=_output/src/${version}
  patched_source "${copy}"
  modfile=_output/kubelet-${version}.mod
  cp "${base}" "${modfile}"
  cp "${base%.mod}.sum" "${modfile%.mod}.sum"
  printf '\nreplace k8s.io/kubernetes => ./%s\n' "${copy}" >> "${modfile}"
  gitversion=${version}+eviction.${commit}
fi

IFS=. read -r major minor _ <<< "${version#v}"
flags=(-s -w)
for setting in "gitVersion=${gitversion}" "gitMajor=${major}" "gitMinor=${minor}" \
  "gitCommit=${commit}" "gitTreeState=${tree}" "buildDate=${date}"; do
  flags+=(-X "k8s.io/component-base/version.${setting}")
done

echo "Building ${output} (the first build takes minutes)"
mkdir -p "$(dirname "${output}")"
# The tags are those of upstream's own release builds.
CGO_ENABLED=0 go build -buildvcs=false -trimpath -modfile="${modfile}" \
  -tags=selinux,notest,grpcnotrace -ldflags="${flags[*]}" -o "${output}" k8s.io/kubernetes/cmd/kubelet
echo "Built ${output}: Kubernetes ${gitversion}"
