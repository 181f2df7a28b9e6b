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
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// kubelet is what a manager asks of one. Each part can be replaced; what is
// not says little and does nothing.
type kubelet struct {
	summary func(context.Context) (*statsapi.Summary, error)
	kill    eviction.KillPodFunc
	pods    []*v1.Pod

	// asked counts how often the layout of the filesystems was asked for.
	asked atomic.Int64

	mu     sync.Mutex
	killed []string
}

// victims returns the names of the pods that were killed so far.
func (k *kubelet) victims() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.killed)
}

func (k *kubelet) Get(ctx context.Context, _ bool) (*statsapi.Summary, error) { return k.summary(ctx) }
func (k *kubelet) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return k.summary(ctx)
}
func (k *kubelet) HasDedicatedImageFs(context.Context) (bool, error) {
	k.asked.Add(1)
	return false, nil
}
func (k *kubelet) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }
func (k *kubelet) DeleteUnusedImages(context.Context) error              { return errors.New("no") }
func (k *kubelet) DeleteAllUnusedContainers(context.Context) error       { return errors.New("no") }

func (k *kubelet) killPod(pod *v1.Pod, evicted bool, grace *int64, fn func(*v1.PodStatus)) error {
	fn(nil)
	fn(&v1.PodStatus{})
	k.mu.Lock()
	k.killed = append(k.killed, pod.Name)
	k.mu.Unlock()
	if k.kill != nil {
		return k.kill(pod, evicted, grace, fn)
	}
	return nil
}

// start starts a manager with a hard threshold on everything.
func (k *kubelet) start(ctx context.Context, t *testing.T) (eviction.Manager, lifecycle.PodAdmitHandler) {
	manager, handler := k.manager(t)
	manager.Start(ctx, k, func() []*v1.Pod { return k.pods }, func(*v1.Pod) bool { return true }, 10*time.Second)
	return manager, handler
}

func (k *kubelet) manager(t *testing.T) (eviction.Manager, lifecycle.PodAdmitHandler) {
	hard := map[string]string{}
	for signal := range evictionapi.OpForSignal {
		hard[string(signal)] = "50%"
	}
	thresholds, err := eviction.ParseThresholdConfig([]string{"pods"}, hard, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := eviction.Config{Thresholds: thresholds, PressureTransitionPeriod: time.Minute}
	return eviction.NewManager(k, config, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{Kind: "Node"}, clock.RealClock{}, true)
}

// inBubble runs a test in simulated time. When it returns, every goroutine that
// it left must end within a second of the context's end (#138854).
func inBubble(t *testing.T, run func(ctx context.Context, t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
		run(ctx, t)
		cancel()
		time.Sleep(time.Second)
		// A goroutine that is still there now makes synctest.Test fail.
	})
}

// let lets simulated time pass, and everything happen that is due.
func let(pass time.Duration) {
	time.Sleep(pass)
	synctest.Wait()
}

func pod(name string) *v1.Pod {
	limit := resource.MustParse("1Gi")
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"},
		Spec:       v1.PodSpec{Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}}},
	}
}

func number(n uint64) *uint64 { return &n }

// short is a summary in which memory is short.
func short() *statsapi.Summary {
	return &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{AvailableBytes: number(1), WorkingSetBytes: number(9)}}}
}

// An emptyDir with a size limit of which the use is not known (#50889): upstream
// panics, and the kubelet ends.
func TestVolumeWithoutUsage(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{pods: []*v1.Pod{pod("a")}}
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			return &statsapi.Summary{Pods: []statsapi.PodStats{{
				PodRef: statsapi.PodReference{UID: "uid"}, VolumeStats: []statsapi.VolumeStats{{Name: "data"}, {}},
				// More than the volume's limit, so that it is looked at.
				Containers: []statsapi.ContainerStats{{Name: "a", Logs: &statsapi.FsStats{UsedBytes: number(2 << 30)}}},
			}}}, nil
		}
		k.start(ctx, t)
		let(time.Minute)
		if len(k.victims()) > 0 {
			t.Errorf("killed %v", k.victims())
		}
	})
}

// Summaries that are nil, empty or hollow, pods that are nil, and a status that
// is nil where the kubelet always passes one.
func TestNil(t *testing.T) {
	hollow := &statsapi.Summary{
		Node: statsapi.NodeStats{
			Memory: &statsapi.MemoryStats{}, Fs: &statsapi.FsStats{}, Rlimit: &statsapi.RlimitStats{},
			Runtime: &statsapi.RuntimeStats{ImageFs: &statsapi.FsStats{}, ContainerFs: &statsapi.FsStats{}}, SystemContainers: []statsapi.ContainerStats{{}, {Name: "pods"}},
		},
		Pods: []statsapi.PodStats{{}, {PodRef: statsapi.PodReference{UID: "uid"}, Containers: []statsapi.ContainerStats{{}}, VolumeStats: []statsapi.VolumeStats{{}}}},
	}
	runtimeless := short()
	runtimeless.Node.Runtime = &statsapi.RuntimeStats{}
	for name, summary := range map[string]*statsapi.Summary{"nil": nil, "empty": {}, "hollow": hollow, "short": short(), "no filesystems": runtimeless} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T) {
				k := &kubelet{pods: []*v1.Pod{nil, pod("a"), nil}}
				k.summary = func(context.Context) (*statsapi.Summary, error) { return summary, nil }
				manager, handler := k.start(ctx, t)
				let(time.Minute)
				pressed := name == "short" || name == "no filesystems"
				if manager.IsUnderMemoryPressure() != pressed || (len(k.victims()) > 0) != pressed {
					t.Errorf("memory pressure %v, killed %v", manager.IsUnderMemoryPressure(), k.victims())
				}
				if result := simnode.Admit(ctx, handler, pod("b")); result.Admit == pressed {
					t.Errorf("admission: %+v", result)
				}
			})
		})
	}
}

// A summary that fails for a while decides nothing, and passes go on.
func TestSummaryFails(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{pods: []*v1.Pod{pod("a")}}
		calls := 0
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			if calls++; calls <= 3 {
				return nil, errors.New("cadvisor is not ready")
			}
			return short(), nil
		}
		k.start(ctx, t)
		let(29 * time.Second)
		if len(k.victims()) > 0 {
			t.Errorf("killed %v while nothing was known", k.victims())
		}
		let(2 * time.Second)
		if len(k.victims()) == 0 {
			t.Error("nothing was killed once the summary came")
		}
	})
}

// While a summary or a kill takes its time, admission and node status answer at
// once; and when the context ends meanwhile, the loop ends with it.
func TestSlowCallsHoldUpNobody(t *testing.T) {
	hang := func(ctx context.Context) { <-ctx.Done() }
	tests := map[string]func(ctx context.Context, k *kubelet){
		"summary": func(_ context.Context, k *kubelet) {
			k.summary = func(ctx context.Context) (*statsapi.Summary, error) { hang(ctx); return nil, ctx.Err() }
		},
		"kill": func(ctx context.Context, k *kubelet) {
			k.summary = func(context.Context) (*statsapi.Summary, error) { return short(), nil }
			k.kill = func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { hang(ctx); return ctx.Err() }
		},
	}
	for name, slow := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T) {
				k := &kubelet{pods: []*v1.Pod{pod("a")}}
				slow(ctx, k)
				manager, handler := k.start(ctx, t)
				let(time.Minute)
				asked := time.Now()
				simnode.Admit(ctx, handler, pod("b"))
				if pressed := manager.IsUnderMemoryPressure(); pressed != (name == "kill") {
					t.Errorf("memory pressure: %v", pressed)
				}
				if took := time.Since(asked); took > 0 {
					t.Errorf("the answers took %v", took)
				}
			})
		})
	}
}

// While evicted pods are waited for, the end of the context ends the wait.
func TestContextEndsDuringCleanup(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{pods: []*v1.Pod{pod("a")}}
		k.summary = func(context.Context) (*statsapi.Summary, error) { return short(), nil }
		manager, _ := eviction.NewManager(k, eviction.Config{Thresholds: []evictionapi.Threshold{{
			Signal: evictionapi.SignalMemoryAvailable, Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Percentage: 0.5},
		}}}, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, false)
		manager.Start(ctx, k, func() []*v1.Pod { return k.pods }, func(*v1.Pod) bool { return false }, 10*time.Second)
		let(2500 * time.Millisecond)
		if len(k.victims()) != 1 {
			t.Errorf("killed %v", k.victims())
		}
	})
}

// The caller's thresholds stay as they are, though the manager adds to its own.
func TestThresholdsOfTheCallerStay(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{summary: func(context.Context) (*statsapi.Summary, error) { return short(), nil }}
		given := append(make([]evictionapi.Threshold, 0, 9), evictionapi.Threshold{
			Signal: evictionapi.SignalContainerFsAvailable, Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Percentage: 0.5},
		})
		before := given[0]
		manager, _ := eviction.NewManager(k, eviction.Config{Thresholds: given}, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, true)
		manager.Start(ctx, k, func() []*v1.Pod { return nil }, func(*v1.Pod) bool { return true }, 10*time.Second)
		let(time.Minute)
		if given[0] != before || given[:9][1] != (evictionapi.Threshold{}) {
			t.Errorf("the thresholds became %+v", given[:9])
		}
	})
}

// Passes that run side by side, as kernel notifications do with the loop, share
// one state without a race, and ask for the filesystems once.
func TestPassesSideBySide(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{pods: []*v1.Pod{pod("a")}}
		takes := func(d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		}
		k.summary = func(context.Context) (*statsapi.Summary, error) { takes(time.Second); return short(), nil }
		k.kill = func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { takes(3 * time.Second); return nil }
		manager, handler := k.manager(t)
		for range 4 {
			// Each loop stands for a notifier: all of them run passes of one manager.
			manager.Start(ctx, k, func() []*v1.Pod { return slices.Clone(k.pods) }, func(*v1.Pod) bool { return true }, 10*time.Second)
		}
		let(time.Minute)
		simnode.Admit(ctx, handler, pod("b"))
		if !manager.IsUnderMemoryPressure() || len(k.victims()) == 0 {
			t.Errorf("memory pressure %v, killed %v", manager.IsUnderMemoryPressure(), k.victims())
		}
		if asked := k.asked.Load(); asked != 1 {
			t.Errorf("asked %d times for the filesystems", asked)
		}
	})
}

// Whoever only admits pods may have no collectors.
func TestWithoutCollectors(t *testing.T) {
	_, handler := eviction.NewManager(nil, eviction.Config{}, nil, nil, nil, nil, nil, clock.RealClock{}, false)
	if result := simnode.Admit(context.Background(), handler, pod("a")); !result.Admit {
		t.Errorf("%+v", result)
	}
}
