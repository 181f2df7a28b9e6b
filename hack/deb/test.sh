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

# Installs, upgrades and removes the package in a Debian of its own (debootstrap,
# root), beside a package that stands for the distribution's kubelet.
#
#   hack/deb/test.sh KUBELET

set -o errexit -o nounset -o pipefail

kubelet=$(realpath "${1:?which kubelet}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ "$(id -u)" -eq 0 ] || { echo "hack/deb/test.sh needs root" >&2; exit 1; }
command -v debootstrap > /dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -qq -y debootstrap > /dev/null

architecture=$(dpkg --print-architecture)
root=$(realpath -m _output/deb/root)
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
if [ ! -e "${root}/.whole" ]; then
  rm -rf "${root}"
  mkdir -p "${root}"
  # The mirror is the one that this machine uses.
  mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources || true; } 2> /dev/null \
    | sed -nE 's/^(deb.* |URIs: *)(https?:[^ ]+).*/\2/p' | head -n 1)
  debootstrap --variant=minbase "${suite}" "${root}" "${mirror}" > _output/deb/debootstrap.log
  touch "${root}/.whole"
fi

# distribution VERSION packs a kubelet that says only what version it is.
distribution() {
  printf '#!/bin/sh\necho "Kubernetes v%s"\n' "$1" > _output/deb/distribution
  chmod 0755 _output/deb/distribution
  KUBELET=_output/deb/distribution VERSION=$1 ARCHITECTURE=${architecture} GOFLAGS='' \
    go tool -modfile=hack/tools/go.mod nfpm package --config hack/deb/distribution.yaml --packager deb --target "${root}/kubelet-$1.deb" > _output/deb/nfpm.log 2>&1 \
    || { cat _output/deb/nfpm.log >&2; exit 1; }
}

# expect WHAT PATTERN COMMAND... runs a command in the root and looks at what it says.
expect() {
  local what=$1 pattern=$2 said
  shift 2
  said=$(chroot "${root}" "$@" 2>&1) || true
  grep -qE "${pattern}" <<< "${said}" || { echo "FAIL: ${what}: want ${pattern}, got: ${said}" >&2; exit 1; }
  echo "ok: ${what}"
}

in_root() { chroot "${root}" env DEBIAN_FRONTEND=noninteractive "$@" > _output/deb/dpkg.log 2>&1 || { cat _output/deb/dpkg.log >&2; exit 1; }; }

distribution 1.0.0-1.1
distribution 1.0.1-1.1
rm -f "${root}"/kubelet-eviction*.deb
hack/deb/build.sh "${kubelet}" "${architecture}" "${root}" > _output/deb/nfpm.log 2>&1 || { cat _output/deb/nfpm.log >&2; exit 1; }
ours=$(cd "${root}" && echo kubelet-eviction*.deb)
version=$("${kubelet}" --version)
# What a run that ended early may have left.
chroot "${root}" dpkg-divert --local --rename --remove /usr/bin/kubelet > /dev/null 2>&1 || true
in_root dpkg --purge kubelet-eviction kubelet

in_root dpkg -i kubelet-1.0.0-1.1.deb
expect "the distribution's kubelet is there" '^Kubernetes v1\.0\.0' kubelet --version
in_root dpkg -i "${ours}"
expect "ours takes its place" "^${version//+/\\+}\$" kubelet --version
expect "the distribution's is kept" '^Kubernetes v1\.0\.0' kubelet.distrib --version
expect "its mode is 755 and its owner root" '^755 root root' stat -c '%a %U %G' /usr/bin/kubelet
in_root dpkg -i kubelet-1.0.1-1.1.deb
expect "an upgrade of the distribution's leaves ours alone" "^${version//+/\\+}\$" kubelet --version
expect "and upgrades what is kept" '^Kubernetes v1\.0\.1' kubelet.distrib --version
in_root dpkg -i "${ours}"
expect "ours can be installed again" "^${version//+/\\+}\$" kubelet --version
in_root dpkg -r kubelet-eviction
expect "removal brings the distribution's back" '^Kubernetes v1\.0\.1' kubelet --version
expect "and leaves no diversion" '^none$' sh -c 'dpkg-divert --list | grep -w kubelet || echo none'
expect "nor a file" 'No such file' ls /usr/bin/kubelet.distrib
in_root dpkg --purge kubelet
in_root dpkg -i "${ours}"
expect "ours alone can be installed" "^${version//+/\\+}\$" kubelet --version
in_root dpkg -i kubelet-1.0.0-1.1.deb
expect "and before the distribution's" '^Kubernetes v1\.0\.0' kubelet.distrib --version
expect "dpkg finds nothing wrong" '^none$' sh -c 'dpkg --verify kubelet-eviction; dpkg --audit; echo none'
mkdir -p "${root}/var/lib/kubelet"
printf 'featureGates:\n  EvictionPromptWake: true\n' > "${root}/var/lib/kubelet/config.yaml"
expect "who goes back is told of gates left behind" 'names feature gates of this package' dpkg --purge kubelet-eviction
expect "purged, the distribution's is back" '^Kubernetes v1\.0\.0' kubelet --version
rm "${root}/var/lib/kubelet/config.yaml"

in_root dpkg --purge kubelet
in_root dpkg -i "${ours}"
expect "who removes the only kubelet is told so" 'there is no /usr/bin/kubelet now' dpkg -r kubelet-eviction
in_root dpkg -i kubelet-1.0.0-1.1.deb
in_root dpkg-divert --local --rename --divert /usr/bin/kubelet.mine --add /usr/bin/kubelet
expect "a diversion of the administrator's is not touched" 'diverted already, by LOCAL' dpkg -i "${ours}"
expect "and stays" '^Kubernetes v1\.0\.0' kubelet.mine --version
expect "with a package that is not half installed" '^none$' sh -c 'dpkg --audit; dpkg -l kubelet-eviction 2> /dev/null | grep -E "^.[HFU]" || echo none'
in_root dpkg-divert --local --rename --remove /usr/bin/kubelet
in_root dpkg -i "${ours}"
expect "without it ours is installed" "^${version//+/\\+}\$" kubelet --version
in_root dpkg --purge kubelet-eviction kubelet
echo "${ours}: installed, upgraded and removed in Debian ${suite}"
