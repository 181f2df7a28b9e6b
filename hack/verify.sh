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

# Runs every check that needs no test: all of them, or the ones that are named.
#
#   hack/verify.sh [gofmt|vet|staticcheck|shellcheck|licences|modules|architecture|platforms]...

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go_files() { git ls-files --cached --others --exclude-standard '*.go'; }
shell_files() { git ls-files --cached --others --exclude-standard '*.sh' .ci/run hack/node 'hack/sandbox/shim/*'; }

check_gofmt() {
  local unformatted
  unformatted=$(go_files | xargs gofmt -l)
  [ -z "${unformatted}" ] || { echo "gofmt -w would change:"; echo "${unformatted}"; return 1; }
}

check_vet() { go vet ./... && go -C test/contrib vet .; }

check_staticcheck() { go tool -modfile=hack/tools/go.mod staticcheck ./...; }

check_shellcheck() {
  command -v shellcheck > /dev/null || { echo "shellcheck is missing: apt-get install shellcheck"; return 1; }
  shell_files | xargs shellcheck
}

check_licences() {
  local file bad=0
  while IFS= read -r file; do
    head -n 20 "${file}" | grep -q 'Copyright The kubelet-eviction Authors' || { echo "${file}: no licence header"; bad=1; }
  done < <(go_files; shell_files; echo Makefile)
  return "${bad}"
}

# go mod tidy must change nothing.
check_modules() {
  go mod tidy -diff
  local module
  for module in hack/tools hack/sandbox/images test/contrib; do
    (cd "${module}" && go mod tidy -diff)
  done
}

check_architecture() { go test ./test/architecture; }

# The drop-in compiles wherever a kubelet is built, and on a developer's Mac.
check_platforms() {
  local platform
  for platform in linux windows darwin; do
    echo "  ${platform}"
    CGO_ENABLED=0 GOOS=${platform} go build ./pkg/...
  done
}

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(gofmt vet staticcheck shellcheck licences modules architecture platforms)
failed=()
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
