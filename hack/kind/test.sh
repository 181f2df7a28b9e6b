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

# Makes a node image in both ways that hack/kind/image.sh has, by an engine and as
# a layout, and looks into what an engine gets from each. The base is a stand-in
# for kindest/node, which comes from a registry: a shell and another kubelet.
#
#   hack/kind/test.sh
#
# It takes Debian's podman (root), with a storage of its own below _output.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
skip() { echo "SKIP: $*"; echo "skipped: 1"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "node images are tested by root"
if ! command -v podman > /dev/null || ! command -v busybox > /dev/null; then
  command -v apt-get > /dev/null || skip "podman is missing"
  said=$({ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends podman buildah busybox-static; } 2>&1) \
    || skip "podman and busybox cannot be installed: ${said##*$'\n'}"
fi

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "${scratch}" "${scratch}" > "${scratch}/storage.conf"
# Without chroot a build would need cgroups and limits that a container may lack.
export CONTAINERS_STORAGE_CONF=${scratch}/storage.conf BUILDAH_ISOLATION=chroot KIND_EXPERIMENTAL_PROVIDER=podman

mkdir -p "${scratch}/base/bin" "${scratch}/base/usr/bin"
cp "$(command -v busybox)" "${scratch}/base/bin/busybox"
ln -s busybox "${scratch}/base/bin/sh"
printf '#!/bin/sh\necho "Kubernetes v1.0.0"\n' > "${scratch}/base/usr/bin/kubelet"
chmod 0700 "${scratch}/base/usr/bin/kubelet"

minor=${K8S:-$(sed -nE 's#^\s+k8s.io/kubernetes v([0-9]+\.[0-9]+)\..*#\1#p' go.mod)}
node=kindest/node:v${minor}.0
mkdir "${scratch}/base/kind"
echo "v${minor}.0" > "${scratch}/base/kind/version"
tar -C "${scratch}/base" -cf "${scratch}/base.tar" .
podman import "${scratch}/base.tar" "${node}" > "${scratch}/log" 2>&1 || { cat "${scratch}/log" >&2; exit 1; }

# holds WHAT IMAGE looks at an image as the engine has it.
holds() {
  local what=$1 image=$2 place said
  place=$(podman image mount "${image}")
  said=$(stat -c '%a %u:%g' "${place}/usr/bin/kubelet")
  [ "${said}" = "755 0:0" ] || { echo "FAIL: ${what}: the kubelet is ${said}" >&2; exit 1; }
  cmp "${place}/usr/bin/kubelet" _output/kind/context/kubelet
  [ "$(chroot "${place}" /usr/bin/kubelet --version)" = "Kubernetes ${version}" ] || { echo "FAIL: ${what}: another kubelet runs" >&2; exit 1; }
  podman image unmount "${image}" > /dev/null
  said=$(podman image inspect --format '{{.Architecture}} {{index .Labels "io.kubelet-eviction.version"}} {{index .Labels "org.opencontainers.image.version"}}' "${image}")
  [ "${said}" = "$(go env GOARCH) ${version} ${version}" ] || { echo "FAIL: ${what}: architecture and labels are ${said}" >&2; exit 1; }
  echo "ok: ${what}: kubelet ${version}, mode 755, owner 0:0, labels"
}

hack/kind/image.sh "${node}" kindest/node:by-engine > "${scratch}/log" 2>&1 || { cat "${scratch}/log" >&2; exit 1; }
version=$(_output/kind/context/kubelet --version | cut -d ' ' -f 2)
[[ ${version} = v${minor}.*+eviction.* ]] || { echo "FAIL: ${version} is not of ${minor}" >&2; exit 1; }
holds "the Dockerfile, built by podman" kindest/node:by-engine

hack/kind/image.sh --layout "${scratch}/base.tar" "${scratch}/layout" > "${scratch}/log" 2>&1 || { cat "${scratch}/log" >&2; exit 1; }
podman load --quiet --input "${scratch}/layout.tar" > /dev/null
holds "the archive, loaded by podman" kindest/node:eviction
podman rmi kindest/node:eviction > /dev/null
# By a relative path: podman names the image after it.
(cd "${scratch}" && podman pull --quiet oci:layout) > "${scratch}/id"
holds "the OCI layout, read by podman" "$(cat "${scratch}/id")"
podman save --quiet --output "${scratch}/saved.tar" kindest/node:by-engine
hack/kind/image.sh --layout "${scratch}/saved.tar" "${scratch}/over" > "${scratch}/log" 2>&1 || { cat "${scratch}/log" >&2; exit 1; }
podman load --quiet --input "${scratch}/over.tar" > /dev/null
holds "a layout over a saved image" kindest/node:eviction

# A node of another minor, whose tag says nothing.
echo v1.30.0 > "${scratch}/base/kind/version"
tar -C "${scratch}/base" -cf "${scratch}/other.tar" .
podman import "${scratch}/other.tar" kindest/node:other > "${scratch}/log" 2>&1 || { cat "${scratch}/log" >&2; exit 1; }
for command in "kindest/node:other" "--layout ${scratch}/other.tar ${scratch}/never"; do
  read -ra arguments <<< "${command}"
  if hack/kind/image.sh "${arguments[@]}" > "${scratch}/log" 2>&1 || ! grep -q 'v1\.30' "${scratch}/log"; then
    cat "${scratch}/log" >&2
    echo "FAIL: a kubelet went into a node of another minor: ${command}" >&2
    exit 1
  fi
done
echo "ok: refuses a node of another minor"
