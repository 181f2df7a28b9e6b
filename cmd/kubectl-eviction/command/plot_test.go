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
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// plotJournal is a journal of three passes, half a minute in all.
const plotJournal = `{"v":1,"seq":1,"time":"2026-03-01T03:10:00Z","kind":"config","config":{"node":"worker-1","thresholds":[{"signal":"memory.available","operator":"LessThan","value":{"quantity":"1Gi"}}],"layout":{},"pressureTransitionPeriod":300,"maxPodGracePeriodSeconds":0,"localStorageLimits":true,"featureGates":{"EvictionConcurrentKills":true}}}
{"v":1,"seq":2,"time":"2026-03-01T03:10:00Z","kind":"heartbeat","wake":{"reason":"start","latency":0},"observations":{"memory.available":{"available":8589934592,"capacity":17179869184,"age":0}}}
{"v":1,"seq":3,"time":"2026-03-01T03:10:20Z","kind":"pass","wake":{"reason":"crossing","latency":0},"observations":{"memory.available":{"available":1000000000,"capacity":17179869184,"age":0}},"conditions":["MemoryPressure"],"decision":{"kills":[{"namespace":"default","name":"leak","uid":"u1","graceSeconds":1,"cause":"memory.available","message":"The node was low on resource: memory."}]}}
{"v":1,"seq":4,"time":"2026-03-01T03:10:30Z","kind":"outcome","outcome":{"kind":"killed","took":10,"pod":{"namespace":"default","name":"leak","uid":"u1"}}}
`

func TestPlot(t *testing.T) {
	cutOff := plotJournal[:len(plotJournal)-40]
	for name, test := range map[string]struct {
		journal   string
		arguments []string
		code      int
		// says is what is printed, output and errors, and writes whether there is a drawing.
		says   string
		writes bool
	}{
		"a picture":                       {plotJournal, []string{"-o", "x.svg"}, 0, "4 records, 1 kills, 0 reclaims", true},
		"a page":                          {plotJournal, []string{"-o", "x.html"}, 0, "4 records, 1 kills, 0 reclaims", true},
		"a window":                        {plotJournal, []string{"-o", "x.svg", "--from", "2026-03-01 03:10:15", "--to", "2026-03-01T03:10:25Z"}, 0, "1 records, 1 kills", true},
		"a signal":                        {plotJournal, []string{"-o", "x.svg", "--signal", "memory.available"}, 0, "4 records", true},
		"a journal that is being written": {cutOff, []string{"-o", "x.svg"}, 0, "3 records, 1 kills", true},
		"a damaged line":                  {"{}}\n" + plotJournal, []string{"-o", "x.svg"}, 0, "line 1: not JSON", true},
		"a window with nothing in it": {plotJournal, []string{"-o", "x.svg", "--from", "2026-03-02"}, 1,
			"no record lies in that time; the journal tells of 2026-03-01T03:10:00Z to 2026-03-01T03:10:30Z", false},
		"an empty journal":        {"", []string{"-o", "x.svg"}, 2, "the journal has no records", false},
		"a foreign file":          {`{"kind":"Pod"}` + "\n", []string{"-o", "x.svg"}, 2, "line 1: no record of an eviction journal", false},
		"a journal of the future": {`{"v":9,"seq":1}` + "\n", []string{"-o", "x.svg"}, 2, "version 9 of the schema", false},
		"a threshold that cannot be read": {strings.Replace(plotJournal, `"1Gi"`, `"lots"`, 1), []string{"-o", "x.svg"}, 2,
			`record 1 of 2026-03-01T03:10:00Z: config.thresholds[0]: memory.available: quantity "lots"`, false},
		"no name to write":          {plotJournal, nil, 2, "-o timeline.svg or -o timeline.html", false},
		"another format":            {plotJournal, []string{"-o", "x.png"}, 2, "x.png: the name must end in .svg or .html", false},
		"an unknown signal":         {plotJournal, []string{"-o", "x.svg", "--signal", "memory"}, 2, "--signal memory: the signals are memory.available, ", false},
		"a signal nobody observed":  {plotJournal, []string{"-o", "x.svg", "--signal", "pid.available"}, 2, "nothing was observed of pid.available", false},
		"no time":                   {plotJournal, []string{"-o", "x.svg", "--from", "yesterday"}, 2, `--from: "yesterday" is neither a time such as`, false},
		"times the wrong way round": {plotJournal, []string{"-o", "x.svg", "--from", "2026-03-02", "--to", "2026-03-01"}, 2, "--to 2026-03-01 lies before --from 2026-03-02", false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Chdir(folder)
			if err := os.WriteFile("eviction.jsonl", []byte(test.journal), 0o600); err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			streams := Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &text, ErrOut: &text}}
			if code := Run(append([]string{"plot", "eviction.jsonl"}, test.arguments...), streams); code != test.code {
				t.Errorf("exit status %d, expected %d", code, test.code)
			}
			if !strings.Contains(text.String(), test.says) {
				t.Errorf("it says\n%s\nand not %q", text.String(), test.says)
			}
			drawings, err := filepath.Glob("x.*")
			if err != nil || (len(drawings) == 1) != test.writes {
				t.Errorf("%v, %v is written", drawings, err)
			}
		})
	}
}
