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

package simnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Timeline is how time passes on a node: real or simulated time, or a driver's own.
type Timeline interface {
	Now() time.Time
	Sleep(time.Duration)
}

// RunTime is the runtime's time; inside a testing/synctest bubble it is simulated.
type RunTime struct{}

// Now returns the time.
func (RunTime) Now() time.Time { return time.Now() }

// Sleep lets time pass.
func (RunTime) Sleep(d time.Duration) { time.Sleep(d) }

// Node is a node as its Spec describes it, at the present of a timeline. Its
// methods may be called side by side.
type Node struct {
	Spec Spec
	Ref  *v1.ObjectReference
	// Journal receives the records of our manager; nil where nobody asks for them.
	Journal  io.Writer
	timeline Timeline
	start    time.Time

	mu    sync.Mutex
	pods  []*simPod
	trace []entry
	// freedImages and freedDead are when a collection took them; negative before.
	freedImages, freedDead time.Duration
	freedPieces            []piece
	slice                  []*v1.Pod
	// acts counts what managers did, so that Watch need not look when nothing was.
	acts int
}

var (
	_ stats.SummaryProvider = &Node{}
	_ record.EventRecorder  = &Node{}
)

// New makes a node whose story begins now.
func New(spec Spec, timeline Timeline) *Node {
	n := &Node{
		Spec: spec, timeline: timeline, start: timeline.Now(),
		Ref:         &v1.ObjectReference{Kind: "Node", Name: "node"},
		freedImages: never, freedDead: never,
	}
	for _, pod := range spec.Pods {
		n.pods = append(n.pods, newPod(pod))
	}
	return n
}

// Elapsed is the time since the story began.
func (n *Node) Elapsed() time.Duration {
	return n.timeline.Now().Sub(n.start)
}

// Note adds a line to the trace.
func (n *Node) Note(format string, args ...any) {
	n.noteAll("", fmt.Sprintf(format, args...))
}

// noteAll adds lines that belong together; kill names the pod whose kill they tell.
func (n *Node) noteAll(kill string, lines ...string) {
	at := n.Elapsed()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acts++
	for _, line := range lines {
		line = fmt.Sprintf("%8s  %s", at.Truncate(time.Millisecond), line)
		n.trace = append(n.trace, entry{at: at, kill: kill, line: strings.TrimRight(line, " ")})
	}
}

// TraceUntil returns what happened before a time, a line each.
func (n *Node) TraceUntil(end time.Duration) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	for _, entry := range n.trace {
		if entry.at < end {
			lines = append(lines, entry.line)
		}
	}
	return lines
}

// Settle puts the kills of one moment behind everything else of it, in the order
// of the pods' names: a manager that kills beside its loop gives them no order.
func (n *Node) Settle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.SortStableFunc(n.trace, func(a, b entry) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.kill, b.kill)
	})
}

// entry is a line of the trace and when it was written.
type entry struct {
	at   time.Duration
	kill string
	line string
}

// HasDedicatedImageFs answers as the kubelet's stats provider does.
func (n *Node) HasDedicatedImageFs(context.Context) (bool, error) {
	if n.Spec.Node.DiskInfoFails.Has(n.Elapsed()) {
		return false, errors.New("no image filesystem stats yet")
	}
	return n.Spec.Node.DedicatedImageFs, nil
}

// HasDedicatedContainerFs answers as the kubelet's stats provider does.
func (n *Node) HasDedicatedContainerFs(context.Context) (bool, error) {
	return n.Spec.Node.SplitContainerFs, nil
}

// ActivePods returns the pods that run now.
func (n *Node) ActivePods() []*v1.Pod {
	at := n.Elapsed()
	n.mu.Lock()
	defer n.mu.Unlock()
	active := []*v1.Pod{}
	for _, pod := range n.pods {
		if pod.running(at) {
			active = append(active, pod.api)
		}
	}
	if !n.Spec.Node.SameSlice {
		return active
	}
	same := len(active) == len(n.slice) && !slices.ContainsFunc(active, func(pod *v1.Pod) bool { return !slices.Contains(n.slice, pod) })
	if !same {
		n.slice = active
	}
	return n.slice
}

// Get returns a summary whose stats were taken at the last multiple of StatsEvery.
func (n *Node) Get(context.Context, bool) (*statsapi.Summary, error) {
	now := n.Elapsed()
	if n.Spec.Node.SummaryFails.Has(now) {
		return nil, errors.New("cadvisor is not ready")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.summary(now.Truncate(n.Spec.Node.StatsEvery), now), nil
}

// GetCPUAndMemoryStats is the other half of a summary provider.
func (n *Node) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return n.Get(ctx, false)
}

// Probe reads the node as it is at the moment, as a machine's files are read.
func (n *Node) Probe() observe.Probe { return &probe{node: n} }

// probe keeps what it saw at a moment for all the signals of that moment.
type probe struct {
	node *Node
	at   time.Duration
	seen observe.Observations
}

// Signals lists all that a node has.
func (p *probe) Signals() []evictionapi.Signal {
	if p.node.Spec.Node.NoProbes {
		return nil
	}
	return observe.Signals()
}

// Read reads one.
func (p *probe) Read(signal evictionapi.Signal) (observe.Observation, error) {
	if now := p.node.Elapsed(); p.seen == nil || now != p.at {
		p.node.mu.Lock()
		summary := p.node.summary(now, now)
		p.node.mu.Unlock()
		p.at, p.seen = now, observe.FromSummary(summary, observe.MemorySource{}).Observations
	}
	o, found := p.seen[signal]
	if signal == evictionapi.SignalMemoryAvailable {
		p.node.mu.Lock()
		o.Reclaimable = p.node.pageCache(p.node.usedAt(p.at), p.at)
		p.node.mu.Unlock()
	}
	if !found {
		return o, fmt.Errorf("the node shows no %s", signal)
	}
	return o, nil
}

// Kill is the kubelet's killPodNow.
func (n *Node) Kill(api *v1.Pod, isEvicted bool, grace *int64, fn func(*v1.PodStatus)) error {
	pod := n.find(api)
	status := v1.PodStatus{}
	fn(&status)
	seconds := "none"
	if grace != nil {
		seconds = fmt.Sprint(*grace)
	}
	lines := []string{fmt.Sprintf("kill %s grace=%s evicted=%v phase=%s reason=%s", pod.Name, seconds, isEvicted, status.Phase, status.Reason)}
	lines = append(lines, n.messageOf(pod, status.Message)...)
	for _, condition := range status.Conditions {
		lines = append(lines, fmt.Sprintf("  condition: %s=%s %s generation=%d", condition.Type, condition.Status, condition.Reason, condition.ObservedGeneration))
		lines = append(lines, n.messageOf(pod, condition.Message)...)
	}
	n.noteAll(pod.Name, lines...)
	n.timeline.Sleep(pod.PodSpec.Kill)
	if pod.Stops > 0 {
		n.stop(pod, grace)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acts++
	switch {
	case pod.KillFails || n.Elapsed() < pod.FailsUntil:
		return errors.New("the runtime does not answer")
	case pod.ignored < pod.IgnoresKills:
		pod.ignored++
	case pod.killedAt == never:
		pod.killedAt = n.Elapsed()
	}
	return nil
}

// stop returns when the pod has stopped by itself, or the shortest grace that it
// was given is over.
func (n *Node) stop(pod *simPod, grace *int64) {
	n.mu.Lock()
	now := n.Elapsed()
	if pod.stopsAt == 0 {
		pod.stopsAt = now + pod.Stops
	}
	if grace != nil {
		pod.stopsAt = min(pod.stopsAt, now+time.Duration(*grace)*time.Second)
	}
	n.mu.Unlock()
	for {
		n.mu.Lock()
		left := pod.stopsAt - n.Elapsed()
		n.mu.Unlock()
		if left <= 0 {
			return
		}
		n.timeline.Sleep(min(left, 100*time.Millisecond))
	}
}

// messageOf is a line for a message that is not the one of the pod's last event.
func (n *Node) messageOf(pod *simPod, message string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod.lastEvent == message {
		return nil
	}
	return []string{"  message: " + message}
}

// CleanedUp says whether everything that a pod held has been given back.
func (n *Node) CleanedUp(api *v1.Pod) bool {
	pod := n.find(api)
	n.mu.Lock()
	defer n.mu.Unlock()
	return pod.killedAt != never && n.Elapsed() >= pod.killedAt+pod.Cleanup
}

func (n *Node) find(api *v1.Pod) *simPod {
	for _, pod := range n.pods {
		if pod.api == api {
			return pod
		}
	}
	panic(fmt.Sprintf("pod %s is not of this node", api.Name))
}

// piece is an image that was deleted.
type piece struct {
	at            time.Duration
	bytes, inodes int64
}

// FreeUnusedImages is the patched kubelet's image manager.
func (n *Node) FreeUnusedImages(_ context.Context, enough func(int64) bool) (int64, error) {
	each, left := n.Spec.Node.EachImage, n.Spec.Node.Images
	if each == 0 {
		each = max(1, left)
	}
	freed := int64(0)
	for range n.freedPieces {
		left -= each
	}
	for ; left > 0 && !enough(freed); left -= each {
		n.Note("delete an image of %s", number(min(each, left)))
		n.timeline.Sleep(n.Spec.Node.GC)
		if n.Spec.Node.GCFails {
			return freed, errors.New("the runtime does not answer")
		}
		n.mu.Lock()
		gone := min(each, left)
		n.freedPieces = append(n.freedPieces, piece{at: n.Elapsed(), bytes: gone, inodes: int64(float64(n.Spec.Node.ImagesInodes) * float64(gone) / float64(n.Spec.Node.Images))})
		n.mu.Unlock()
		freed += gone
	}
	return freed, nil
}

// DeleteUnusedImages is the kubelet's image manager.
func (n *Node) DeleteUnusedImages(context.Context) error {
	return n.collect("unused images", &n.freedImages)
}

// DeleteAllUnusedContainers is the kubelet's container collector.
func (n *Node) DeleteAllUnusedContainers(context.Context) error {
	return n.collect("dead containers", &n.freedDead)
}

func (n *Node) collect(what string, freedAt *time.Duration) error {
	n.Note("delete %s", what)
	n.timeline.Sleep(n.Spec.Node.GC)
	if n.Spec.Node.GCFails {
		return errors.New("the runtime does not answer")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if *freedAt == never {
		*freedAt = n.Elapsed()
	}
	return nil
}

// Event records an event.
func (n *Node) Event(object runtime.Object, eventType, reason, message string) {
	n.AnnotatedEventf(object, nil, eventType, reason, "%s", message)
}

// Eventf records an event.
func (n *Node) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	n.AnnotatedEventf(object, nil, eventType, reason, format, args...)
}

// AnnotatedEventf records an event.
func (n *Node) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	name := "?"
	switch object := object.(type) {
	case *v1.Pod:
		name = "pod " + object.Name
		pod := n.find(object)
		n.mu.Lock()
		pod.lastEvent = message
		n.mu.Unlock()
	case *v1.ObjectReference:
		name = "node"
	}
	n.Note("event %s %s %s: %s", name, eventType, reason, message)
	for _, key := range sortedKeys(annotations) {
		n.Note("  %s: %s", key, annotations[key])
	}
}
