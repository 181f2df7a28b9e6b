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

package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestJournalOfANode reads a journal as the kubelet serves it: by the file server of the
// standard library, which redirects a folder whose name has no slash at its end.
func TestJournalOfANode(t *testing.T) {
	folder := t.TempDir()
	const config = `{"v":1,"seq":1,"time":"2026-11-30T03:00:00Z","kind":"config","config":{"node":"worker","thresholds":[],"layout":{},"pressureTransitionPeriod":300,"maxPodGracePeriodSeconds":0,"localStorageLimits":true,"featureGates":{}}}` + "\n"
	const beat = `{"v":1,"seq":2,"time":"2026-11-30T03:00:10Z","kind":"heartbeat","wake":{"reason":"interval","latency":0},"observations":{}}` + "\n"
	write(t, folder+"/kubelet-eviction/eviction-2026-11-30T02-00-00.000.jsonl", []byte(config+beat))
	write(t, folder+"/kubelet-eviction/eviction.jsonl", []byte(config+beat+beat))
	const logs = "/api/v1/nodes/worker/proxy/logs/"
	mux := http.NewServeMux()
	mux.Handle(logs, http.StripPrefix(logs, http.FileServer(http.Dir(folder))))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, test := range []struct{ command, want string }{
		{"replay --node worker", "5 records: 3 steps taken again"},
		{"explain --node worker", "no pod was evicted"},
		{"replay --node other", "error: node other: listing the journal"},
	} {
		got := ran(append(strings.Fields(test.command), "--server", server.URL))
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %q", test.command, got, test.want)
		}
	}
}
