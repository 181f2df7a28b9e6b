#!/bin/busybox sh
# shellcheck shell=dash

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

# First process of the emulated guest of hack/guest. It mounts the disk and goes
# over to the system that is on it; or, if there is none, runs /command from the
# disk in /w and powers off.

/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
  [ ! -e "/modules/${module}.ko" ] || insmod "/modules/${module}.ko"
done
tries=0
while [ ! -b /dev/vda ] && [ "${tries}" -lt 100 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
mount -t ext4 -o noatime /dev/vda /disk

# Its init is a link that leads nowhere from here.
if [ -d /disk/etc/systemd ]; then
  umount /proc /sys
  mount --move /dev /disk/dev
  exec switch_root /disk /sbin/init
fi

mkdir -p /dev/pts /dev/shm /w
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
mount --bind /disk/w /w
ip link set lo up
hostname guest
if [ -b /dev/vdb ]; then
  mkswap /dev/vdb > /dev/null
  swapon /dev/vdb
fi
# Only a root without processes hands its controllers down.
mkdir /sys/fs/cgroup/init.scope
while read -r process; do
  echo "${process}" > /sys/fs/cgroup/init.scope/cgroup.procs
done < /sys/fs/cgroup/cgroup.procs 2> /dev/null
tr ' ' '\n' < /sys/fs/cgroup/cgroup.controllers | while read -r controller; do
  echo "+${controller}" > /sys/fs/cgroup/cgroup.subtree_control
done
cd /w || exit
mkdir -p out
HOME=/w sh /disk/command
status=$?
cd /
sync
umount /w /disk
echo "GUEST-EXIT ${status}"
poweroff -f
