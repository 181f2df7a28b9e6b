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

# First process of a sandboxed node; hack/node starts it in new namespaces as
#
#   init.sh RUN-FOLDER CGROUP
#
# It enters the node's cgroups, gives the node a root filesystem in which
# nothing that is written reaches the machine, and then waits for orphans.

set -o errexit -o nounset -o pipefail

run=$1 group=$2 stage=${3:-1}

cgroup_v2() { [ -e /sys/fs/cgroup/cgroup.controllers ]; }

if [ "${stage}" = 1 ]; then
  if cgroup_v2; then
    echo $$ > "/sys/fs/cgroup/${group}/node/cgroup.procs"
  else
    awk '$3 == "cgroup" { print $2 }' /proc/mounts | while IFS= read -r hierarchy; do
      echo $$ > "${hierarchy}/${group}/node/cgroup.procs"
    done
  fi
  # Only now, so that the new namespace's root is the node's cgroup.
  exec unshare --cgroup "$0" "${run}" "${group}" 2
fi
if cgroup_v2; then
  # Out of the node's own cgroup, which hands its controllers down to the pods.
  echo $$ > "/sys/fs/cgroup/${group}/node/system/cgroup.procs"
  read -ra controllers < "/sys/fs/cgroup/${group}/node/cgroup.controllers"
  for controller in "${controllers[@]}"; do
    echo "+${controller}" > "/sys/fs/cgroup/${group}/node/cgroup.subtree_control"
  done
fi

# What the machine has is below, what the node writes above, in memory.
layers=${run}/root
mkdir -p "${layers}"
mount -t tmpfs -o mode=755 tmpfs "${layers}"
mkdir -p "${layers}"/{upper,work,merged}
mount -t overlay -o "lowerdir=/,upperdir=${layers}/upper,workdir=${layers}/work" overlay "${layers}/merged"
new=${layers}/merged
mount --rbind /dev "${new}/dev"
mount -t proc proc "${new}/proc"
mount -t sysfs sysfs "${new}/sys"
mount -t tmpfs tmpfs "${new}/run"
mount -t tmpfs -o mode=1777 tmpfs "${new}/tmp"

# The node's own view of its cgroups.
if cgroup_v2; then
  mount -t cgroup2 cgroup2 "${new}/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 tmpfs "${new}/sys/fs/cgroup"
  while IFS=: read -r _ controllers _; do
    [ -n "${controllers}" ] || continue
    folder=${new}/sys/fs/cgroup/${controllers#name=}
    mkdir -p "${folder}"
    case "${controllers}" in
      name=*) mount -t cgroup -o "none,${controllers}" cgroup "${folder}" ;;
      *) mount -t cgroup -o "${controllers}" cgroup "${folder}" ;;
    esac
    # cpu,cpuacct is also known by each of its names.
    IFS=, read -ra alone <<< "${controllers}"
    [ ${#alone[@]} -le 1 ] || for one in "${alone[@]}"; do ln -sfn "${controllers}" "${new}/sys/fs/cgroup/${one}"; done
  done < /proc/self/cgroup
fi

# The checkout is there wherever it lies, below /tmp as well, and cannot be
# written to. The run folder is the machine's own, so that both sides see the
# same files.
checkout=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${new}${checkout}"
mount --bind "${checkout}" "${new}${checkout}"
mount -o remount,bind,ro "${new}${checkout}"
mount --bind "${run}" "${new}${run}"

for name in kubelet containerd; do
  mkdir -p "${new}/var/lib/${name}"
done
mkdir -p "${new}/mnt"
mount -o loop "${run}/kubelet.img" "${new}/mnt"
mkdir -p "${new}/mnt"/{kubelet,containerd,pods}
mount --bind "${new}/mnt/kubelet" "${new}/var/lib/kubelet"
if [ -e "${run}/containerd.img" ]; then
  mount -o loop "${run}/containerd.img" "${new}/var/lib/containerd"
else
  mount --bind "${new}/mnt/containerd" "${new}/var/lib/containerd"
fi
mkdir -p "${new}/var/log/pods" "${new}/var/log/containers"
mount --bind "${new}/mnt/pods" "${new}/var/log/pods"

cd "${new}"
pivot_root . .
umount --lazy .
cd /
mount --make-rshared /

hostname node1
printf '127.0.0.1 localhost\n10.77.0.1 node1\n' > /etc/hosts
ip link set lo up
# A pair of virtual links carries the node's address; there is nothing beyond.
ip link add node0 type veth peer name node1
ip address add 10.77.0.1/24 dev node0
ip link set node0 up
ip link set node1 up
ip route add default dev node0

# The kubelet sets these when they differ; the machine's must not change.
mask() {
  local file=/run/sysctl/${1//\//.}
  mkdir -p /run/sysctl
  echo "$2" > "${file}"
  mount --bind "${file}" "/proc/sys/$1"
}
mask vm/overcommit_memory 1
mask vm/panic_on_oom 0
mask kernel/panic 10
mask kernel/panic_on_oops 1

mkdir -p /etc/kubernetes/certs /etc/containerd /etc/cni/net.d /opt/cni
ln -sfn "$(dirname "$(dirname "${run}")")/bin/cni" /opt/cni/bin
openssl genrsa -out /etc/kubernetes/sa.key 2048 2> /dev/null
openssl rsa -in /etc/kubernetes/sa.key -pubout -out /etc/kubernetes/sa.pub 2> /dev/null
echo 'sandbox,admin,admin,system:masters' > /etc/kubernetes/tokens.csv
cat > /etc/kubernetes/kubeconfig << 'END'
apiVersion: v1
kind: Config
clusters: [{name: sandbox, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: sandbox}}]
contexts: [{name: sandbox, context: {cluster: sandbox, user: admin}}]
current-context: sandbox
END
cat > /etc/kubernetes/kubelet.yaml << 'END'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# 1.35 and later refuse cgroup v1 otherwise.
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
# Reached by nothing but the node itself.
address: 0.0.0.0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
resolvConf: ""
volumePluginDir: /var/lib/kubelet/plugins-exec
evictionPressureTransitionPeriod: 30s
END
cat > /etc/containerd/config.toml << 'END'
version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "registry.k8s.io/pause:3.10.2"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  # CAP_SYS_RESOURCE may be missing, and a lower score takes it.
  restrict_oom_score_adj = true
[plugins."io.containerd.nri.v1.nri"]
  disable = true
END
for host in registry.k8s.io docker.io; do
  mkdir -p "/etc/containerd/certs.d/${host}"
  printf 'server = "https://%s"\n[host."http://127.0.0.1:5000"]\n  capabilities = ["pull", "resolve"]\n' "${host}" > "/etc/containerd/certs.d/${host}/hosts.toml"
done
cat > /etc/cni/net.d/10-bridge.conflist << 'END'
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.100.0.0/24"}]]}}]}
END

touch "${run}/ready"
trap : CHLD
while :; do
  sleep 3600 &
  wait $! || true
done
