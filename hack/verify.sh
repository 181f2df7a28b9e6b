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

# Runs every check of the repository, or the ones that are named. All take seconds
# but the last, which takes minutes for each minor, or less where Go has its results.
#
#   hack/verify.sh [gofmt|vet|staticcheck|shellcheck|licences|modules|patches|architecture|platforms|prefixes]...

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go_files() { git ls-files --cached --others --exclude-standard '*.go'; }
shell_files() { git ls-files --cached --others --exclude-standard | xargs grep -lE -m 1 '^#!.*sh$' | xargs -n 1 awk 'FNR == 1 && /^#!/ { print FILENAME } { exit }'; }

check_gofmt() {
  local unformatted
  unformatted=$(go_files | xargs gofmt -l)
  [ -z "${unformatted}" ] || { echo "gofmt -w would change:"; echo "${unformatted}"; return 1; }
}

check_vet() {
  local module
  go vet ./...
  for module in hack/tools hack/kind/nodeimage hack/sandbox/images test/contrib; do
    go -C "${module}" vet ./...
  done
}

check_staticcheck() { go tool -modfile=hack/tools/go.mod staticcheck ./...; }

check_shellcheck() {
  command -v shellcheck > /dev/null || { echo "shellcheck is missing: apt-get install shellcheck"; return 1; }
  shell_files | xargs shellcheck
}

check_licences() {
  local file bad=0
  while IFS= read -r file; do
    # From its first line to its last.
    head -n 20 "${file}" | sed -n '/Copyright The kubelet-eviction Authors/,$p' | grep -q 'limitations under the License' \
      || { echo "${file}: no licence header, or part of one"; bad=1; }
  done < <(go_files; shell_files; printf '%s\n' Makefile hack/deb/*.yaml hack/kind/cluster.yaml hack/kind/Dockerfile hack/systemd/*.conf)
  return "${bad}"
}

# go mod tidy must change nothing.
check_modules() {
  go mod tidy -diff
  local module modfile
  for module in hack/tools hack/sandbox/images hack/kind/nodeimage test/contrib; do
    (cd "${module}" && go mod tidy -diff)
  done
  for modfile in hack/versions/*.mod; do
    unchanged_modfile "$(basename "${modfile}" .mod)"
  done
}

# unchanged_modfile writes the module file of a minor again, and complains if it
# was another; that which was there stays.
unchanged_modfile() (
  kept=$(mktemp -d)
  trap 'cp "${kept}"/* hack/versions/; rm -rf "${kept}" "${kept}.log"' EXIT
  cp "hack/versions/$1".* "${kept}"
  version=$(sed -nE 's#^\s+k8s.io/kubernetes (v.*)#\1#p' "hack/versions/$1.mod")
  hack/update-modfile.sh "$1" "${version}" > "${kept}.log" 2>&1 || { cat "${kept}.log"; return 1; }
  diff -u "${kept}/$1.mod" "hack/versions/$1.mod" || { echo "hack/update-modfile.sh $1 ${version} would change hack/versions/$1.mod"; return 1; }
)

check_architecture() { go test ./test/architecture; }

# The drop-in compiles wherever a kubelet is built, and on a developer's Mac.
check_platforms() {
  local platform
  for platform in linux windows darwin; do
    echo "  ${platform}"
    CGO_ENABLED=0 GOOS=${platform} go build ./pkg/...
  done
}

# Every patch applies, says why it is there, and has at most three lines of context;
# every series is the same list.
check_patches() {
  local series patch minor tree first='' bad=0
  for series in patches/v*; do
    minor=${series#patches/v}
    first=${first:-${series}}
    diff "${first}/series" "${series}/series" || { echo "${series} has not the patches of ${first}"; bad=1; }
    if ! diff <(cd "${series}" && printf '%s\n' *.patch) <(sed '/^ *#/d; /^ *$/d' "${series}/series"); then
      echo "${series}/series does not list the patches in ${series}"
      bad=1
    fi
    for patch in "${series}"/*.patch; do
      for word in 'Subject: ' 'Touches: ' 'Without it: '; do
        grep -q "^${word}" "${patch}" || { echo "${patch}: its header has no ${word% }"; bad=1; }
      done
      # Between two changes of a hunk lies the context of both.
      awk 'function ends() { if (n > 3) exit 1; n = 0; edge = 1 }
        /^(@@|diff )/ { ends(); next } /^[-+]/ { if (edge && n > 3) exit 1; n = 0; edge = 0; next }
        /^ / { if (++n > 6) exit 1 } END { if (n > 3) exit 1 }' <(sed -n '/^diff /,/^-- $/{/^-- $/d;p}' "${patch}") \
        || { echo "${patch}: more than three lines of context"; bad=1; }
    done
    tree=$(source_of "${minor}")
    # Applied, and taken back without a trace.
    cp -r "${tree}" "${tree}.before"
    if ! { hack/apply --check "${tree}" && hack/apply "${tree}" && hack/apply --revert "${tree}" && diff -r "${tree}.before" "${tree}"; } > "${tree}.log" 2>&1; then
      cat "${tree}.log"
      bad=1
    fi
    rm -rf "${tree}" "${tree}.before" "${tree}.log"
  done
  return "${bad}"
}

# source_of makes a folder with as much of a minor's source as hack/apply looks at.
source_of() {
  local source tree
  tree=$(mktemp -d)
  source=$(export GOFLAGS; GOFLAGS=$(hack/goflags "$1"); go mod download k8s.io/kubernetes && go list -m -f '{{.Dir}}' k8s.io/kubernetes)
  mkdir -p "${tree}/pkg"
  cp "${source}/go.mod" "${tree}"
  cp -r "${source}/pkg/features" "${source}/pkg/kubelet" "${tree}/pkg"
  chmod -R u+w "${tree}"
  echo "${tree}"
}

# Every prefix of each series builds and passes upstream's unit tests.
check_prefixes() { hack/verify-patches.sh; }

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(gofmt vet staticcheck shellcheck licences modules patches architecture platforms prefixes)
failed=()
for check in "${checks[@]}"; do
  if ! declare -F "check_${check}" > /dev/null; then
    sed -n '/^# Runs every/,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
  fi
done
for check in "${checks[@]}"; do
  echo "verify ${check}"
  # In a subshell, so that errexit counts inside it as well.
  set +o errexit
  (set -o errexit; "check_${check}")
  status=$?
  set -o errexit
  [ "${status}" -eq 0 ] || failed+=("${check}")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "verify: failed: ${failed[*]}"
  exit 1
fi
echo "verify: ${#checks[@]} checks passed"
