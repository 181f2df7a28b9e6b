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
# Both are built from the k8s.io/kubernetes that go.mod requires, in the same
# way. The patched one is built from a copy of its source below _output, with
# the package laid over upstream's directory of the same name and the patches of
# patches/v1.NN applied in the order of its series file.

set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${root}"

flavour=${1:-}
case "${flavour}" in
  patched)  output=${2:-_output/bin/kubelet} ;;
  upstream) output=${2:-_output/bin/kubelet-upstream} ;;
  *) sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed -n '/^Builds/,/^patches/p' >&2; exit 2 ;;
esac

package=pkg/kubelet/eviction
ours=$(go list -m)
go mod download k8s.io/kubernetes
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
source=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
tree=$([ -z "$(git status --porcelain 2>/dev/null)" ] && echo clean || echo dirty)
# The time of the commit, so that the same commit always gives the same binary.
date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z)

# lay_over puts this package in the place of upstream's in a copy of the source.
# Upstream's api package stays. The copy is made once a version; it is renamed
# into place when it is whole, so that an interrupted one is never used.
lay_over() {
  local copy=$1
  if [ ! -d "${copy}" ]; then
    echo "Copying the source of Kubernetes ${version} to ${copy}"
    rm -rf "${copy}.part"
    mkdir -p "$(dirname "${copy}")"
    cp -r "${source}" "${copy}.part"
    chmod -R u+w "${copy}.part"
    mv "${copy}.part" "${copy}"
  fi
  find "${copy}/${package}" -mindepth 1 -maxdepth 1 ! -name api -exec rm -rf {} +
  local file
  while IFS= read -r file; do
    mkdir -p "${copy}/$(dirname "${file}")"
    sed "s#\"${ours}/${package}#\"k8s.io/kubernetes/${package}#" "${file}" > "${copy}/${file}"
  done < <(find "${package}" -name '*.go' ! -name '*_test.go')
  apply_series "${copy}"
}

# apply_series puts the files that patches touch back as upstream has them, and
# patches them. What an earlier series touched is listed in .patched.
apply_series() {
  local copy=$1 file patch
  local series=patches/${version%.*}
  if [ -e "${copy}/.patched" ]; then
    while IFS= read -r file; do
      if [ -e "${source}/${file}" ]; then
        install -m 0644 "${source}/${file}" "${copy}/${file}"
      else
        rm -f "${copy:?}/${file}"
      fi
    done < "${copy}/.patched"
  fi
  : > "${copy}/.patched"
  while IFS= read -r patch; do
    git apply --numstat "${series}/${patch}" | cut -f 3 >> "${copy}/.patched"
    # The copy lies inside this repository, which git must not take for the
    # patches' own.
    (cd "${copy}" && GIT_CEILING_DIRECTORIES=${root}/_output/src git apply "${root}/${series}/${patch}") \
      || { echo "${series}/${patch} does not apply to Kubernetes ${version}" >&2; exit 1; }
  done < <(sed '/^ *#/d; /^ *$/d' "${series}/series" 2> /dev/null)
}

modfile=go.mod
gitversion=${version}
if [ "${flavour}" = patched ]; then
  copy=_output/src/kubernetes-${version}
  lay_over "${copy}"
  modfile=_output/kubelet-${version}.mod
  cp go.mod "${modfile}"
  cp go.sum "${modfile%.mod}.sum"
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
