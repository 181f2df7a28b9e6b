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

# Shows what this project is for: a sandboxed node, a steady pod and one that takes
# what is short, and what the kubelet does about it, as it happens.
#
#   hack/demo.sh [patched|upstream] [memory|pressure]
#
# Which kubelet, patched if none is named; and what becomes short: a pod leaks memory,
# or keeps reading more than its limit of memory holds, so that tasks wait for memory
# (cgroup v2 with PSI, and the patched kubelet, which alone has such thresholds).

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
flavour=${1:-patched}
case "${flavour}" in
  patched) kubelet=_output/bin/kubelet ;;
  upstream) kubelet=_output/bin/kubelet-upstream ;;
  *) echo "usage: hack/demo.sh [patched|upstream] [memory|pressure]" >&2; exit 2 ;;
esac
shortage=${2:-memory}
case "${flavour} ${shortage}" in
  "patched memory" | "patched pressure" | "upstream memory") ;;
  "upstream pressure") echo "upstream's kubelet has no threshold on pressure, and would wait for ever" >&2; exit 2 ;;
  *) echo "what becomes short is memory or pressure, not ${shortage}" >&2; exit 2 ;;
esac
if [ "${shortage}" = pressure ] && [ ! -r /proc/pressure/memory ]; then
  echo "no PSI here: /proc/pressure/memory cannot be read; make demo-guest SHORTAGE=pressure has it" >&2
  exit 1
fi
# One that was built before serves, if it is of the minor that is asked for; the
# emulated guest has no Go, and the kubelet that it was given.
if [ ! -x "${kubelet}" ] || { [ -n "${K8S:-}" ] && [[ $("${kubelet}" --version) != "Kubernetes v${K8S}."* ]]; }; then
  hack/build-kubelet.sh "${flavour}"
fi

node() { hack/node -n demo "$@"; }
trap 'node down' EXIT

# The emulated guest is too slow for these, and sets its own.
leak_mib_per_second=${DEMO_RATE_MIB:-100}
case "${shortage}" in
  memory)
    # The kubelet counts the machine's memory as the node's own. This much of it the
    # node may use before the threshold is met; the leak takes 10 s to get there.
    room_mib=${DEMO_ROOM_MIB:-1500}
    total_mib=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
    threshold=$((total_mib - room_mib))
    settings="evictionHard: {memory.available: ${threshold}Mi}"
    culprit=leak limit='' arguments=(memory -rate "${leak_mib_per_second}")
    story="Threshold: memory.available < ${threshold} MiB. Pod steady takes 50 MiB and keeps them; pod leak takes ${leak_mib_per_second} MiB more every second."
    level() { echo $(($(node available) >> 20)); }
    short() { [ "$1" -lt "${threshold}" ]; }
    levels="available LEVEL MiB" ;;
  pressure)
    threshold=20
    settings="evictionHard: {memory.available: 100Mi, memory.pressure.some.avg10: ${threshold}%}
featureGates: {EvictionPressureSignals: true}"
    culprit=thrash limit=96Mi arguments=(thrash -rate "${leak_mib_per_second}" -limit 256)
    story="Threshold: memory.pressure.some.avg10 > ${threshold} %. Pod steady takes 50 MiB and keeps them; pod thrash may have ${limit} and keeps reading a file of 256 MiB."
    level() { sed -nE 's/^some avg10=([0-9]+).*/\1/p' /proc/pressure/memory; }
    short() { [ "$1" -gt "${threshold}" ]; }
    levels="somebody waits for memory LEVEL % of the time" ;;
esac

config=$(mktemp --suffix=.yaml)
cat > "${config}" << END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
${settings}
END
node up --kubelet "${kubelet}" --config "${config}" --memory 6G
rm -f "${config}"

# pod NAME LIMIT ARGUMENT... prints a pod, with a limit of memory if that is not empty.
pod() {
  local name=$1 limit=$2
  shift 2
  cat << END
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec:
  nodeName: node1
  restartPolicy: Never
  automountServiceAccountToken: false
  containers:
  - {name: hog, image: "registry.k8s.io/local/hog:1", args: [$(printf '"%s",' "$@")]${limit:+, resources: {limits: {memory: ${limit}\}\}}}
END
}
echo
echo "${story}"
{ pod steady '' memory -rate 50 -limit 50; echo ---; pod "${culprit}" "${limit}" "${arguments[@]}"; } | node kubectl apply -f - > /dev/null

# One line for every change worth seeing, and one a second while nothing changes.
begin=$(date +%s%N)
say() { printf '%6.1fs  %s\n' "$((($(date +%s%N) - begin) / 100000000))e-1" "$*"; }
at() { say "${levels/LEVEL/$1}$2"; }
crossed='' seen='' last_second=''
end=$((SECONDS + ${DEMO_SECONDS:-90}))
while [ "${SECONDS}" -lt "${end}" ]; do
  now=$(level)
  if [ -z "${crossed}" ] && short "${now}"; then
    crossed=yes
    at "${now}" ": the threshold is crossed"
  fi
  while IFS= read -r line; do
    case "${seen}" in *"|${line}|"*) continue ;; esac
    seen="${seen}|${line}|"
    say "kubelet: ${line}"
  done < <(node logs kubelet | sed -nE 's/^[IE][0-9]+ ([0-9:.]+) .*"(Attempting to reclaim a starved resource|Killing the pod|Evicted the pod|Evicted pods are cleaned up|Eviction manager: (attempting to reclaim|pod is evicted successfully|pods successfully cleaned up))"(.*)$/\1 \2\4/p' | cut -c1-160)
  phase=$(node kubectl get pod "${culprit}" -o 'jsonpath={.status.phase}')
  # A kubelet that is quick may be done between two looks of this script, which
  # then never sees the threshold crossed.
  if [ "${phase}" = Failed ] && ! short "${now}"; then
    at "${now}" ": the shortage is over"
    break
  fi
  if [ "${SECONDS}" != "${last_second}" ]; then
    last_second=${SECONDS}
    at "${now}" ""
  fi
  sleep 0.2
done

echo
node kubectl get pods
echo
echo "Status of ${culprit}:"
node kubectl get pod "${culprit}" -o 'jsonpath={.status.phase}{" "}{.status.reason}{": "}{.status.message}{"\n"}'
echo "Events:"
node kubectl get events --field-selector reason=Evicted -o 'custom-columns=POD:.involvedObject.name,REASON:.reason,MESSAGE:.message'
node kubectl get events --field-selector reason=EvictionThresholdMet -o 'custom-columns=NODE:.involvedObject.name,REASON:.reason,MESSAGE:.message'

ended=$(node kubectl get pod "${culprit}" -o 'jsonpath={.status.phase} {.status.reason}')
steady=$(node kubectl get pod steady -o 'jsonpath={.status.phase}')
if [ "${ended}" != "Failed Evicted" ] || [ "${steady}" != Running ]; then
  echo "demo: FAILED: ${culprit} is ${ended}, steady is ${steady}" >&2
  exit 1
fi
if [ "${flavour}" = patched ]; then
  echo
  echo "\$ kubectl eviction explain ${culprit} --node node1"
  # The emulated guest has no Go, and what was built for it.
  ! command -v go > /dev/null || make --no-print-directory kubectl-eviction
  # The last record is written beside the loop; a pass or two later it is there.
  sleep 1
  records=$(mktemp --suffix=.jsonl)
  node kubectl get --raw /api/v1/nodes/node1/proxy/logs/kubelet-eviction/eviction.jsonl > "${records}"
  _output/bin/kubectl-eviction explain "${culprit}" -f "${records}"
  echo
  echo "\$ kubectl eviction replay --node node1"
  _output/bin/kubectl-eviction replay "${records}"
  rm -f "${records}"
fi
echo
echo "Pod ${culprit} was evicted, steady still runs."
