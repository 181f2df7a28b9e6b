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
# commands, a bill of materials of each (CycloneDX), Debian packages, and the
# checksums of all of it.
#
#   hack/release.sh            into _output/release/VERSION
#   hack/release.sh check      builds again elsewhere, with an empty build cache and
#                              another umask and time zone, and compares
#
# K8S chooses the minor; PLATFORMS="linux/arm64" builds for these alone.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOFLAGS
GOFLAGS=$(hack/goflags "${K8S:-}")
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
commit=$(git rev-parse --short=12 HEAD)
name=${version}+eviction.${commit}
read -ra platforms <<< "${PLATFORMS:-linux/amd64 linux/arm64 windows/amd64}"
# What a build writes of the time is the time of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

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
    if [[ ${platform} = linux/* ]]; then
      hack/deb/build.sh "${folder}/kubelet-${suffix}" "${platform#*/}" "${folder}"
    fi
  done
  local file
  for file in "${folder}"/*; do
    [[ ${file} != *.deb ]] || continue
    bill_of_materials "${file}"
  done
  (cd "${folder}" && sha256sum -- * > SHA256SUMS)
}

# bill_of_materials lists the modules that a binary is linked from, as the binary
# itself has them. A serial number, the time of the run, and the sums of the tool,
# which is built where it runs, would differ each time.
bill_of_materials() {
  GOFLAGS='' go tool -modfile=hack/tools/go.mod cyclonedx-gomod bin -json -noserial \
    -version "${name}" -output "$1.cdx.json" "$1" 2> /dev/null
  awk '/"hashes": \[/ && !done { within = 1 } !within { print } within && /^ *\],?$/ { within = 0; done = 1 }' "$1.cdx.json" > "$1.cdx.part"
  mv "$1.cdx.part" "$1.cdx.json"
  sed -i -E "s/^( *\"timestamp\": \").*(\",?)\$/\1$(date -u -d "@${SOURCE_DATE_EPOCH}" +%Y-%m-%dT%H:%M:%SZ)\2/" "$1.cdx.json"
}

release=_output/release/${name}
case "${1:-}" in
  '')
    build "${release}"
    cat "${release}/SHA256SUMS"
    echo "Released ${name} to ${release}" ;;
  check)
    [ -z "$(git status --porcelain)" ] || { echo "what is not committed would be in one build alone" >&2; exit 1; }
    [ -e "${release}/SHA256SUMS" ] || build "${release}"
    elsewhere=$(mktemp -d)
    trap 'chmod -R u+w "${elsewhere}"; rm -rf "${elsewhere}"' EXIT
    (
      umask 077
      git clone -q . "${elsewhere}/source"
      cd "${elsewhere}/source"
      env "GOCACHE=${elsewhere}/cache" TZ=Pacific/Kiritimati "K8S=${K8S:-}" hack/release.sh
    )
    diff "${release}/SHA256SUMS" "${elsewhere}/source/${release}/SHA256SUMS" || { echo "two builds of ${name} differ" >&2; exit 1; }
    echo "Two builds of ${name} are the same, $(wc -l < "${release}/SHA256SUMS") files" ;;
  *) sed -n '/^# Builds/,/^# K8S/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
