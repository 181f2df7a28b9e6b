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

# Builds what is published of a version: a kubelet and, once a platform, the
# commands, a bill of materials of each (CycloneDX), Debian packages, a systemd
# drop-in, what it was built with, and the checksums of all of it.
#
#   hack/release.sh            into _output/release/VERSION
#   hack/release.sh check      builds again elsewhere, with an empty build cache and
#                              another umask, time zone and language, and compares
#
# K8S chooses the minor; PLATFORMS="linux/arm64" builds for these alone. What is not
# committed is not released: the version is the commit's.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Whatever the user's own settings are: these change the bytes. GOFLAGS is not
# empty, or go env -w would count.
export GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' GOFIPS140=off GOWORK=off LC_ALL=C
export GOFLAGS
GOFLAGS=$(GOFLAGS=-trimpath hack/goflags "${K8S:-}")
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
read -r commit tree seconds <<< "$(hack/commit)"
name=${version}+eviction.${commit}
read -ra platforms <<< "${PLATFORMS:-linux/amd64 linux/arm64 windows/amd64}"
# What a build writes of the time is the time of the commit.
export SOURCE_DATE_EPOCH=${seconds}
case "${1:-}" in
  '' | check) ;;
  *) sed -n '/^# Builds/,/^# committed/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
if [ "${tree}" = dirty ] || [ "${commit}" = unknown ]; then
  echo "a release is of a commit, and this is ${commit}, ${tree}: commit or stash what git status shows" >&2
  exit 1
fi

build() {
  local folder=$1 platform suffix command target
  rm -rf "${folder}"
  mkdir -p "${folder}"
  for platform in "${platforms[@]}"; do
    export GOOS=${platform%/*} GOARCH=${platform#*/}
    suffix=${GOOS}-${GOARCH}
    [ "${GOOS}" != windows ] || suffix+=.exe
    hack/build-kubelet.sh patched "${folder}/kubelet-${suffix}"
    for command in cmd/*/; do
      [ -e "${command}main.go" ] || continue
      target=${folder}/$(basename "${command}")-${suffix}
      CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags="-s -w" -o "${target}" "./${command}"
    done
    unset GOOS GOARCH
    if [ "${platform%/*}" = linux ]; then
      hack/deb/build.sh "${folder}/kubelet-${suffix}" "${platform#*/}" "${folder}"
    fi
  done
  local file
  for file in "${folder}"/*-*-*; do
    [ "${file%.deb}" != "${file}" ] || bill_of_materials "${file}"
  done
  cp hack/systemd/20-eviction.conf "${folder}"
  {
    echo "version: ${name}"
    echo "go: $(go env GOVERSION)"
    echo "settings: GOAMD64=${GOAMD64} GOARM64=${GOARM64} GOEXPERIMENT=${GOEXPERIMENT} GOFIPS140=${GOFIPS140} CGO_ENABLED=0"
  } > "${folder}/BUILT"
  (cd "${folder}" && sha256sum -- * > SHA256SUMS)
}

# bill_of_materials lists the modules that a binary is linked from, as the binary
# itself has them, and Go's standard library.
bill_of_materials() {
  GOFLAGS='' go tool -modfile=hack/tools/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp \
    -version "${name}" -output "$1.cdx.json" "$1" > "${log}" 2>&1 || { cat "${log}" >&2; exit 1; }
  GOFLAGS='' go -C hack/tools run ./billofmaterials -epoch "${seconds}" "$(realpath "$1").cdx.json"
}

release=_output/release/${name}
log=$(mktemp)
elsewhere=
trap 'rm -f "${log}"; [ -z "${elsewhere}" ] || { chmod -R u+w "${elsewhere}"; rm -rf "${elsewhere}"; }' EXIT
case "${1:-}" in
  '')
    build "${release}"
    cat "${release}/BUILT" "${release}/SHA256SUMS"
    echo "Released ${name} to ${release}" ;;
  check)
    # With this Go and for these platforms, whatever is there; the cache makes it quick.
    build "${release}"
    elsewhere=$(mktemp -d)
    (
      umask 077
      git clone -q . "${elsewhere}/source"
      cd "${elsewhere}/source"
      env "GOCACHE=${elsewhere}/cache" TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 "K8S=${K8S:-}" "PLATFORMS=${platforms[*]}" hack/release.sh
    )
    diff "${release}/SHA256SUMS" "${elsewhere}/source/${release}/SHA256SUMS" || { echo "two builds of ${name} differ" >&2; exit 1; }
    echo "Two builds of ${name} are the same, $(wc -l < "${release}/SHA256SUMS") files" ;;
esac
