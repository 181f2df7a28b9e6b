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

package act

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Reports is told what comes of kills, from their goroutines.
type Reports interface {
	// Killed: the pod's containers have ended, or the kill failed.
	Killed(eviction decide.Eviction, err error)
	// CleanedUp: everything that the pod held has been given back.
	CleanedUp(uid types.UID)
	// Slow: a kill has exceeded its grace by 30 s and goes on.
	Slow(eviction decide.Eviction)
}

// slowAfter is by how much a kill exceeds its grace before somebody is told.
const slowAfter = 30 * time.Second

// cleanupPatience bounds how long a killed pod is asked for; by then its promise
// is worth nothing, and it is killed again if it still runs.
const cleanupPatience = 10 * time.Minute

// Kills runs kills beside the loop, each in a goroutine of its own. How many run
// at once is decided by whoever starts them.
type Kills struct {
	Kill     Killer
	Recorder record.EventRecorder
	Reports  Reports
	// Hold keeps a pod from taking more memory until it has ended, where the machine
	// can; nil where nobody is to be held. It returns how to let the pod go.
	Hold func(*v1.Pod) (release func() error, err error)
}

// hold keeps a victim of a memory shortage from taking the node down in the second
// that it has to stop. It returns what is to be done if the kill fails.
func (k Kills) hold(logger klog.Logger, eviction decide.Eviction) (release func()) {
	traits, known := observe.TraitsOf(evictionapi.Signal(eviction.Cause))
	if k.Hold == nil || !known || traits.Resource != v1.ResourceMemory || eviction.GracePeriodSeconds > heldGrace {
		return func() {}
	}
	letGo, err := k.Hold(eviction.Pod)
	if err != nil {
		logger.V(4).Info("The pod is not held to the memory that it has", "err", err)
		return func() {}
	}
	return func() {
		if err := letGo(); err != nil {
			logger.V(2).Info("Could not let go of the memory of a pod whose kill failed", "err", err)
		}
	}
}

// heldGrace is up to what grace, in seconds, a victim is held: one that has longer is
// the victim of a soft threshold, and is to end in order.
const heldGrace = 1

// Start kills a pod. The kubelet's kill has no context: one that hangs keeps its
// goroutine until it returns. CleanedUp is asked for until the context ends.
func (k Kills) Start(ctx context.Context, kill decide.Kill, cleanedUp func(*v1.Pod) bool) {
	logger := klog.FromContext(ctx).WithValues("pod", klog.KObj(kill.Eviction.Pod), "cause", kill.Eviction.Cause)
	eviction := kill.Eviction
	if kill.Again == decide.NotAgain {
		//nolint:forbidigo // The pod's event is upstream's, to the last annotation.
		k.Recorder.AnnotatedEventf(eviction.Pod, eviction.Annotations, v1.EventTypeWarning, Reason, "%s", eviction.Message)
	}
	logger.Info("Killing the pod", "podUID", eviction.Pod.UID, "gracePeriodSeconds", eviction.GracePeriodSeconds, "attempt", kill.Again, "message", eviction.Message)
	if owner := metav1.GetControllerOf(eviction.Pod); owner != nil && owner.Kind == "DaemonSet" {
		// The order is the same for it as for others (#65300); whoever wonders why
		// the node is short again should know.
		logger.Info("The pod's DaemonSet will put it back on this node at once", "daemonSet", klog.KRef(eviction.Pod.Namespace, owner.Name))
	}
	go func() {
		grace := eviction.GracePeriodSeconds
		slow := time.AfterFunc(time.Duration(max(grace, 0))*time.Second+slowAfter, func() {
			logger.Info("A kill takes long, others go on", "gracePeriodSeconds", grace, "exceededBy", slowAfter)
			k.Reports.Slow(eviction)
		})
		release := k.hold(logger, eviction)
		err := k.Kill(eviction.Pod, true, &grace, statusOf(eviction))
		slow.Stop()
		if err != nil {
			release()
			logger.Error(err, "Could not kill the pod, it is tried again")
		} else {
			logger.Info("Evicted the pod")
		}
		k.Reports.Killed(eviction, err)
		if err == nil && awaitCleanedUp(ctx, eviction.Pod, cleanedUp) {
			k.Reports.CleanedUp(eviction.Pod.UID)
		}
	}()
}

func awaitCleanedUp(ctx context.Context, pod *v1.Pod, cleanedUp func(*v1.Pod) bool) bool {
	poll := time.NewTicker(cleanupPoll)
	defer poll.Stop()
	patience := time.NewTimer(cleanupPatience)
	defer patience.Stop()
	for !cleanedUp(pod) {
		select {
		case <-ctx.Done():
			return false
		case <-patience.C:
			return false
		case <-poll.C:
		}
	}
	return true
}
