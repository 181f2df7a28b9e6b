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

# Writes the module file of a minor of Kubernetes, hack/versions/MINOR.mod and
# .sum. The minor of go.mod has none.
#
#   hack/update-modfile.sh 1.36            the newest patch release that the module proxy serves
#   hack/update-modfile.sh 1.36 v1.36.3    that one
#
# What upstream's own go.mod of that release requires is required here, so that a
# kubelet is linked from the modules that upstream tested, and what the tests need
# besides, as in go.mod.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

minor=${1:-}
[[ ${minor} =~ ^[0-9]+\.[0-9]+$ ]] || { sed -n '/^# Writes/,/^# besides/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
version=${2:-}
if [ -z "${version}" ]; then
  served=$(go list -m -versions k8s.io/kubernetes | tr ' ' '\n')
  version=$(sed -nE "/^v${minor//./\.}\.[0-9]+\$/p" <<< "${served}" | sort -V | tail -n 1)
fi
[ -n "${version}" ] || { echo "the module proxy serves no release of Kubernetes ${minor}" >&2; exit 1; }
staging=v0.${version#v1.}

# -json would put what is wrong where nobody sees it.
go mod download "k8s.io/kubernetes@${version}"
upstream=$(go mod download -json "k8s.io/kubernetes@${version}" | sed -nE 's/^\s+"Dir": "(.*)",?$/\1/p')/go.mod
# Made aside, so that a run that fails leaves none, or the one before.
modfile=hack/versions/${minor}.mod
scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
made=${scratch}/hack/versions/${minor}.mod
mkdir -p "${modfile%/*}" "${made%/*}"

edits=(-module="$(go list -m -modfile=go.mod)" -go="$(go list -m -modfile=go.mod -f '{{.GoVersion}}')" -require="k8s.io/kubernetes@${version}")
while IFS= read -r module; do
  edits+=(-replace="${module}=${module}@${staging}")
  if grep -qE "^\s+${module} v0\.0\.0" "${upstream}"; then
    edits+=(-require="${module}@${staging}")
  fi
done < <(sed -nE 's#^\s+(k8s\.io/[a-z-]+) => \./staging/.*#\1#p' "${upstream}")
# The guest's comparison with cadvisor is made with the newest version only.
while read -r module wanted; do
  grep -qE "^\s+${module} v" "${upstream}" || edits+=(-require="${module}@${wanted}")
done < <(sed -nE '/^require/,/^\)/s#^\s+([^ ]+) (v[^ ]+)$#\1 \2#p' go.mod | grep -vE '^(k8s\.io/|github.com/google/cadvisor)')

{
  echo "// Written by hack/update-modfile.sh ${minor}."
  grep -v '^//' "${upstream}"
} > "${made}"
go mod edit "${edits[@]}" "${made}"
: > "${made%.mod}.sum"

# Go fills in the sums, and what those modules require themselves.
export GOFLAGS
GOFLAGS="-modfile=${made} -tags=kubernetes${minor} -mod=mod"
for goos in linux windows darwin; do
  # hack/dependencies.go lists what is built or tested without being imported.
  sed -nE 's/^\s+_ "(.*)"$/\1/p' hack/dependencies.go | GOOS=${goos} xargs go list -deps -test ./... > /dev/null
done
# A pattern of import paths looks at the whole graph of modules.
go list -m all > /dev/null
mv "${made}" "${made%.mod}.sum" "${modfile%/*}/"
echo "${modfile}: Kubernetes ${version}"
