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

# Runs the unit tests that the patches add, in the source that make kubelet has
# patched. A patch's tests are in files of their own.
#
#   hack/test-patches.sh [FLAG OF GO TEST]...

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOFLAGS
GOFLAGS=$(hack/goflags "${K8S:-}")
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
copy=_output/src/${version}
[ -e "${copy}/.kubelet-eviction/files" ] || { echo "no patched source in ${copy}; make kubelet makes it" >&2; exit 1; }

# As the kubelet is built, so that what was compiled for it serves here as well.
export CGO_ENABLED=0
flags=(-trimpath "-tags=selinux,notest,grpcnotrace" "-modfile=_output/kubelet-${version}.mod")
ran=0
while IFS= read -r file; do
  names=$(sed -nE 's/^func (Test[A-Za-z0-9_]+)\(.*/\1/p' "${copy}/${file}" | paste -sd '|')
  go test "${flags[@]}" "$@" -run "^(${names})\$" "k8s.io/kubernetes/$(dirname "${file}")"
  ran=$((ran + 1))
done < <(awk '$1 == "-" && $3 ~ /_test\.go$/ { print $3 }' "${copy}/.kubelet-eviction/files")
[ "${ran}" -gt 0 ] || { echo "the patches of ${version%.*} bring no tests" >&2; exit 1; }
