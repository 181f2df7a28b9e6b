#!/bin/sh

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

# Moves the distribution's kubelet aside before this one is unpacked.

set -e

case "$1" in
  install | upgrade)
    owner=$(dpkg-divert --listpackage /usr/bin/kubelet)
    if [ -n "${owner}" ] && [ "${owner}" != kubelet-eviction ]; then
      # LOCAL is what dpkg-divert calls the administrator.
      echo "kubelet-eviction: /usr/bin/kubelet is diverted already, by ${owner}: dpkg-divert --list /usr/bin/kubelet. Remove that first" >&2
      exit 1
    fi
    dpkg-divert --package kubelet-eviction --add --rename --divert /usr/bin/kubelet.distrib /usr/bin/kubelet ;;
esac
