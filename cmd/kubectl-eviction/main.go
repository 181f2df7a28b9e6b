/*
Copyright The kubelet-eviction Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// kubectl-eviction is a kubectl plugin that explains what the kubelet's eviction
// manager did, and what it would do: kubectl eviction --help.
package main

import (
	"os"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:], command.Terminal()))
}
