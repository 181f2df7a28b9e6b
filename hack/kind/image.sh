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

# Puts the patched kubelet into a node image of kind.
#
#   hack/kind/image.sh NODE [NAME]             kindest/node:v1.37.x, with an engine
#   hack/kind/image.sh --layout BASE [FOLDER]  an OCI image layout, without one
#
# NAME is kindest/node:eviction unless another is given. The minor is that of
# NODE's tag, or K8S. The engine is the one that kind would take: docker, nerdctl or
# podman, or what KIND_EXPERIMENTAL_PROVIDER says. BASE is what docker save wrote,
# an archive of an OCI layout, or the tarball of a node's root filesystem; FOLDER is
# _output/kind/layout, and beside it comes an archive for docker load, from which
# kind takes its nodes' image.

set -o errexit -o nounset -o pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '/^# Puts/,/^# kind takes/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
layout=
if [ "${1:-}" = --layout ]; then
  layout=yes
  shift
fi
case "$#/${1:-}" in
  */-*) usage ;;
  1/?* | 2/?*) ;;
  *) usage ;;
esac
base=$1
if [ -n "${layout}" ]; then
  base=$(realpath "${base}")
  [ -e "${base}" ] || { echo "there is no ${base}" >&2; exit 1; }
fi
target=${2:-}
default_layout=_output/kind/layout
cd "${here}/../.."

if [ -z "${layout}" ]; then
  engine=${KIND_EXPERIMENTAL_PROVIDER:-}
  for candidate in docker nerdctl podman; do
    [ -n "${engine}" ] || ! command -v "${candidate}" > /dev/null || engine=${candidate}
  done
  command -v "${engine:-docker}" > /dev/null \
    || { echo "${engine:-docker} is missing; hack/kind/image.sh --layout BASE does without it" >&2; exit 1; }
  of_tag=$(sed -nE 's/^[^@]*:v([0-9]+\.[0-9]+)\..*/\1/p' <<< "${base}")
  K8S=${of_tag:-${K8S:-}}
  export K8S
  "${engine}" image inspect "${base}" > /dev/null 2>&1 || "${engine}" pull "${base}"
  GOARCH=$("${engine}" image inspect --format '{{.Architecture}}' "${base}")
else
  GOARCH=${GOARCH:-$(go env GOARCH)}
fi
export GOOS=linux GOARCH

context=_output/kind/context
mkdir -p "${context}"
hack/build-kubelet.sh patched "${context}/kubelet"
read -r commit _ seconds <<< "$(hack/commit)"
version=$(GOFLAGS=$(hack/goflags "${K8S:-}") go list -m -f '{{.Version}}' k8s.io/kubernetes)+eviction.${commit}

if [ -z "${layout}" ]; then
  target=${target:-kindest/node:eviction}
  "${engine}" build --build-arg "NODE=${base}" --build-arg "VERSION=${version}" --tag "${target}" --file hack/kind/Dockerfile "${context}"
  echo "Built ${target}: ${base} with kubelet ${version}"
else
  # That of an earlier run makes way; a folder that somebody named does not.
  [ -n "${target}" ] || rm -rf "${default_layout}"
  target=$(realpath -m "${target:-${default_layout}}")
  cd hack/kind/nodeimage
  # Built for this machine, whatever the image is for.
  env -u GOOS -u GOARCH GOFLAGS='' go run . -base "${base}" -kubelet "${here}/../../${context}/kubelet" -version "${version}" -arch "${GOARCH}" \
    -epoch "${seconds}" -to "${target}" -archive "${target}.tar"
fi
