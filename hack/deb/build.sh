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

# Packs a kubelet as a Debian package that takes the place of the distribution's.
#
#   hack/deb/build.sh KUBELET ARCHITECTURE FOLDER
#
# The distribution's own kubelet stays as /usr/bin/kubelet.distrib (dpkg-divert),
# also when it is upgraded, and comes back when the package is removed.

set -o errexit -o nounset -o pipefail

[ $# -eq 3 ] || { sed -n '/^# Packs/,/^# also/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
kubelet=$(realpath "$1")
architecture=$2
folder=$(realpath "$3")

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export GOFLAGS
GOFLAGS=$(hack/goflags "${K8S:-}")
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
read -r commit _ seconds <<< "$(hack/commit)"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-${seconds}}
export SOURCE_DATE_EPOCH
# Debian sorts by the commit's time what the same Kubernetes is packed with; a count
# of commits would be another in a shallow clone.
VERSION=${version#v}+eviction.$(date -u -d "@${seconds}" +%Y%m%dt%H%M%S).${commit}
export KUBELET=${kubelet} ARCHITECTURE=${architecture} VERSION

GOFLAGS='' go tool -modfile=hack/tools/go.mod nfpm package --config hack/deb/nfpm.yaml --packager deb --target "${folder}"
