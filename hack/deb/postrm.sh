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

# Puts the distribution's kubelet back in its place.

set -e

case "$1" in
  remove | abort-install | disappear)
    # A diversion of somebody else's, for which an installation ended, is theirs.
    if [ "$(dpkg-divert --listpackage /usr/bin/kubelet)" = kubelet-eviction ]; then
      dpkg-divert --package kubelet-eviction --remove --rename --divert /usr/bin/kubelet.distrib /usr/bin/kubelet
    fi ;;
esac

if [ "$1" = remove ]; then
  if [ -x /usr/bin/kubelet ]; then
    echo "kubelet-eviction: /usr/bin/kubelet is the distribution's again. To run it: systemctl restart kubelet"
  else
    echo "kubelet-eviction: there is no /usr/bin/kubelet now. The one that runs ends when it is restarted: install the distribution's first"
  fi
  # Upstream has no gate of such a name, and evictionHard is written otherwise.
  for file in /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet; do
    if grep -qsE '(^|[^A-Za-z])Eviction[A-Z][A-Za-z]+(: *|=)(true|false)' "${file}"; then
      echo "kubelet-eviction: ${file} names feature gates of this package, with which the distribution's kubelet does not start. Take them out before you restart it"
    fi
  done
fi
