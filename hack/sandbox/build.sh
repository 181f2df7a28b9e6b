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

# Builds what a sandboxed node is made of into _output/node/bin, each part once:
# a part that is there is not built again. Versions are pinned here.
#
#   hack/sandbox/build.sh [PART]...    default: all parts a node needs

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$PWD/_output/node/bin
src=$PWD/_output/node/src
mkdir -p "${bin}" "${src}"

# What stands around the kubelet is of go.mod's Kubernetes, whatever minor the
# kubelet is of: GOFLAGS may name another's module file, which must not change here.
if command -v go > /dev/null; then
  GOFLAGS=$(hack/goflags)
  export GOFLAGS
fi

# Newest of each on 2026-11-29 that the module proxy serves and that works with
# Kubernetes 1.37: the API server needs etcd 3.6 or later, upstream's node e2e
# suite names the versions of the images.
containerd_version=v2.4.2
runc_version=v1.5.3
etcd_version=v3.7.0
critools_version=v1.37.0
cni_version=v1.9.1

# in_module makes a scratch module that requires one other, and enters it.
in_module() {
  local name=$1 requirement=$2
  mkdir -p "${src}/${name}"
  cd "${src}/${name}"
  [ -e go.mod ] || go mod init "example.com/${name}" 2> /dev/null
  # By what is required, not by whether the file is there: a fetch that failed is
  # tried again, and says why.
  grep -q " ${requirement%@*} ${requirement#*@}" go.mod || go get "${requirement}"
}

# in_kubernetes enters a scratch module with the project's own requirements.
in_kubernetes() {
  mkdir -p "${src}/kubernetes"
  cp go.mod go.sum "${src}/kubernetes/"
  cd "${src}/kubernetes"
  sed -i 's#^module .*#module example.com/kubernetes#' go.mod
}

static() { CGO_ENABLED=0 go build -mod=mod -buildvcs=false -trimpath -ldflags "-s -w ${2:-}" -o "${bin}/$1" "$3"; }

kubernetes_ldflags() {
  local package kubernetes_version
  kubernetes_version=$(GOFLAGS=-mod=mod go list -m -f '{{.Version}}' k8s.io/kubernetes)
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    IFS=. read -r major minor _ <<< "${kubernetes_version#v}"
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s ' "${package}" "${kubernetes_version}" "${package}" "${major}" "${package}" "${minor}"
  done
}

# require_compiler installs what runc and the pause program are built with.
require_compiler() {
  if ! command -v gcc > /dev/null || [ ! -e /usr/include/seccomp.h ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y gcc libc6-dev libseccomp-dev > /dev/null
  fi
}

part_containerd() {
  in_module containerd "github.com/containerd/containerd/v2@${containerd_version}"
  local flags="-X github.com/containerd/containerd/v2/version.Version=${containerd_version#v}"
  static ctr "${flags}" github.com/containerd/containerd/v2/cmd/ctr
  static containerd-shim-runc-v2 "${flags}" github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
  static containerd "${flags}" github.com/containerd/containerd/v2/cmd/containerd
}

part_runc() {
  require_compiler
  in_module runc "github.com/opencontainers/runc@${runc_version}"
  go build -mod=mod -buildvcs=false -trimpath -tags seccomp -ldflags "-s -w" -o "${bin}/runc" github.com/opencontainers/runc
}

part_etcd() {
  in_module etcd "go.etcd.io/etcd/server/v3@${etcd_version}"
  static etcd "" go.etcd.io/etcd/server/v3
}

part_crictl() {
  in_module crictl "sigs.k8s.io/cri-tools@${critools_version}"
  static crictl "" sigs.k8s.io/cri-tools/cmd/crictl
}

# Pods get a bridge of the node's own; there is nothing to route to.
part_cni() {
  in_module cni "github.com/containernetworking/plugins@${cni_version}"
  local plugin
  for plugin in main/bridge main/loopback ipam/host-local; do
    static "cni.part/${plugin#*/}" "" "github.com/containernetworking/plugins/plugins/${plugin}"
  done
  mv "${bin}/cni.part" "${bin}/cni"
}

part_kube-apiserver() {
  in_kubernetes
  static kube-apiserver "$(kubernetes_ldflags)" k8s.io/kubernetes/cmd/kube-apiserver
}

part_kubectl() {
  in_kubernetes
  static kubectl "$(kubernetes_ldflags)" k8s.io/kubernetes/cmd/kubectl
}

part_agnhost() {
  in_kubernetes
  static agnhost "$(kubernetes_ldflags)" k8s.io/kubernetes/test/images/agnhost
}

part_e2e_node.test() {
  in_kubernetes
  go test -mod=mod -c -vet=off -ldflags "-s -w $(kubernetes_ldflags)" -o "${bin}/e2e_node.test" k8s.io/kubernetes/test/e2e_node
}

# The pause program of the sandbox image does nothing but wait and reap.
part_pause() {
  require_compiler
  local source
  source=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)/build/pause/linux/pause.c
  gcc -Os -static -DVERSION=3.10.2 -o "${bin}/pause" "${source}"
}

part_images() {
  cd hack/sandbox/images
  CGO_ENABLED=0 go build -buildvcs=false -trimpath -o "${bin}/images" .
}

part_hog() {
  CGO_ENABLED=0 go build -buildvcs=false -trimpath -o "${bin}/hog" ./test/e2e_node/hog
}

# seconds it took on two idle cores, so that nobody thinks it hangs
declare -A takes=([containerd]=110 [runc]=30 [etcd]=45 [crictl]=60 [kube-apiserver]=400 [kubectl]=60 [agnhost]=60 [e2e_node.test]=360)

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(containerd runc cni etcd crictl kube-apiserver kubectl pause images hog)
for part in "${parts[@]}"; do
  case "${part}" in
    # Our own, and quick; where there is no Go, they came with the rest.
    images | hog) ! command -v go > /dev/null || { (set -o errexit; "part_${part}"); continue; } ;;
  esac
  [ ! -e "${bin}/${part}" ] || continue
  echo "Building ${part}$([ -z "${takes[${part}]:-}" ] || echo " (about ${takes[${part}]} s the first time)")"
  begin=${SECONDS}
  (set -o errexit; "part_${part}")
  echo "Built ${part} in $((SECONDS - begin)) s"
done
