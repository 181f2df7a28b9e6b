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

// Package eviction keeps a node alive when memory, disk or process IDs run
// short, by reclaiming what nobody uses and then by evicting pods. It stands in
// for the kubelet's package of the same path, with the same exported API.
//
// A pass observes (package observe), decides (package decide, with threshold
// and rank below it) and acts (package act). The decision is a pure function;
// everything that touches the world is in this package, act and wake. Start
// reading at manager.pass in manager.go and decide.Step.
package eviction
