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

package eviction_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// shortOfMemory is a kubelet with two pods whose node has half a gibibyte left.
func shortOfMemory() *kubelet {
	number := func(n uint64) *uint64 { return &n }
	k := &kubelet{}
	var pods []statsapi.PodStats
	for name, used := range map[string]uint64{"leak": 12 << 30, "other": 2 << 30} {
		k.pods = append(k.pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}})
		pods = append(pods, statsapi.PodStats{PodRef: statsapi.PodReference{UID: name}, Memory: &statsapi.MemoryStats{WorkingSetBytes: number(used)}})
	}
	k.summary = func(context.Context) (*statsapi.Summary, error) {
		return &statsapi.Summary{Pods: pods, Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{
			Time: metav1.Now(), AvailableBytes: number(1 << 29), WorkingSetBytes: number(31 << 29),
		}}}, nil
	}
	return k
}

// journalled starts a manager that keeps its journal in a directory.
func (k *kubelet) journalled(ctx context.Context, t *testing.T, directory, hard string) eviction.Manager {
	t.Helper()
	thresholds, err := eviction.ParseThresholdConfig(nil, map[string]string{"memory.available": hard}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := eviction.Config{Thresholds: thresholds, PressureTransitionPeriod: time.Minute, JournalDirectory: directory, Probe: nothing{}}
	manager, _ := eviction.NewManager(k, config, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{Kind: "Node", Name: "worker"}, clock.RealClock{}, true)
	manager.Start(ctx, k, func() []*v1.Pod { return slices.Clone(k.pods) }, func(*v1.Pod) bool { return false }, 100*time.Millisecond)
	return manager
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("not within five seconds: %s", what)
}

// recorded says whether a journal has a text in it.
func recorded(directory, text string) bool {
	content, err := os.ReadFile(filepath.Join(directory, journal.FileName))
	return err == nil && strings.Contains(string(content), text)
}

// These tests are in real time: the library that rotates files keeps a goroutine,
// which simulated time would wait for. That nobody else goes is asserted over several
// passes, which are a tenth of a second apart; the rules themselves are tested without
// time in decide/restart_test.go.

// TestRestartGoesOn: a kubelet ends while a kill runs. The one after it has the
// condition at once, kills the same pod again, and no other for the same shortage.
func TestRestartGoesOn(t *testing.T) {
	withGates(t)
	directory := t.TempDir()
	release := make(chan struct{})
	hangs := func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error {
		<-release
		return nil
	}
	defer time.Sleep(100 * time.Millisecond)
	defer close(release)

	before := shortOfMemory()
	before.kill = hangs
	ctx, cancel := context.WithCancel(t.Context())
	before.journalled(ctx, t, directory, "1Gi")
	eventually(t, "the leak is killed", func() bool { return slices.Equal(before.victims(), []string{"leak"}) })
	eventually(t, "a pass with the victim in flight is recorded", func() bool { return recorded(directory, `"inFlight":[{`) })
	cancel()
	time.Sleep(50 * time.Millisecond)

	after := shortOfMemory()
	after.kill = hangs
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	manager := after.journalled(ctx, t, directory, "1Gi")
	if !manager.IsUnderMemoryPressure() {
		t.Error("the condition is gone after the restart")
	}
	eventually(t, "the leak is killed again", func() bool { return len(after.victims()) > 0 })
	time.Sleep(500 * time.Millisecond)
	if victims := after.victims(); !slices.Equal(victims, []string{"leak"}) {
		t.Errorf("after the restart %v were killed", victims)
	}
}

// TestRestartWithoutJournal: whatever lies in the journal's place, the manager works.
func TestRestartWithoutJournal(t *testing.T) {
	withGates(t)
	old := `{"v":1,"seq":1,"time":"2020-01-01T00:00:00Z","kind":"config","config":{"thresholds":[],"layout":{},"pressureTransitionPeriod":1,"maxPodGracePeriodSeconds":0,"localStorageLimits":true,"featureGates":{}}}
{"v":1,"seq":2,"time":"2020-01-01T00:00:00Z","kind":"pass","state":{"inFlight":[{"namespace":"default","name":"leak","uid":"leak"}]}}
`
	for name, content := range map[string]string{
		"empty": "", "no journal": "hello\n", "binary": "\x00\xff\n\x00", "cut off": old[:len(old)-20], "old": old, "a later version": `{"v":9,"seq":1}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, journal.FileName)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			k := shortOfMemory()
			ctx, cancel := context.WithCancel(t.Context())
			defer time.Sleep(50 * time.Millisecond)
			defer cancel()
			k.journalled(ctx, t, directory, "1Gi")
			eventually(t, "the leak is killed", func() bool { return slices.Contains(k.victims(), "leak") })
			eventually(t, "it is recorded after what was there", func() bool { return recorded(directory, `"kills":[{`) && recorded(directory, content) })
			if killer, configured := lastKill(t, path); killer == nil || !configured {
				t.Errorf("the kill (%v) cannot be read or replayed (%t)", killer, configured)
			}
		})
	}
}

// lastKill returns the last record of a journal with a kill, and whether one of the
// same kubelet's configuration comes before it.
func lastKill(t *testing.T, path string) (killer *journal.Record, configured bool) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	config := false
	err = journal.Read(file, func(r *journal.Record) error {
		config = config || r.Kind == journal.KindConfig && r.Config.Node == "worker"
		if r.Decision != nil && len(r.Decision.Kills) > 0 {
			killer, configured = r, config
		}
		return nil
	}, func(*journal.LineError) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return killer, configured
}
