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
commit=$(git rev-parse --short=12 HEAD 2> /dev/null || echo unknown)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
export SOURCE_DATE_EPOCH
# Debian sorts by the count of commits what the same Kubernetes is packed with.
VERSION=${version#v}+eviction.$(git rev-list --count HEAD 2> /dev/null || echo 0).${commit}
export KUBELET=${kubelet} ARCHITECTURE=${architecture} VERSION

GOFLAGS='' go tool -modfile=hack/tools/go.mod nfpm package --config hack/deb/nfpm.yaml --packager deb --target "${folder}"
