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

// Package act carries out what a step decided: it is the edge at which the
// manager touches pods, images and events.
package act

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

// Reason of an evicted pod's status and event.
const Reason = "Evicted"

// Killer kills a pod with the status that fn writes, and returns when its
// containers have ended. It is the kubelet's killPodNow.
type Killer func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error

// Evict announces the eviction in an event and kills the pod. It blocks until
// the kill has returned. The eviction counts in kubelet_evictions even when the
// kill returns an error, as upstream counts it. The error is logged, and returned.
func Evict(ctx context.Context, eviction decide.Eviction, kill Killer, recorder record.EventRecorder) error {
	logger := klog.FromContext(ctx)
	pod := eviction.Pod
	//nolint:forbidigo // The pod's event is upstream's, to the last annotation.
	recorder.AnnotatedEventf(pod, eviction.Annotations, v1.EventTypeWarning, Reason, "%s", eviction.Message)
	logger.V(3).Info("Killing the pod", "pod", klog.KObj(pod), "podUID", pod.UID, "gracePeriodSeconds", eviction.GracePeriodSeconds, "message", eviction.Message)
	grace := eviction.GracePeriodSeconds
	err := kill(pod, true, &grace, statusOf(eviction))
	if err != nil {
		logger.Error(err, "Could not kill the pod", "pod", klog.KObj(pod), "cause", eviction.Cause)
	} else {
		logger.Info("Evicted the pod", "pod", klog.KObj(pod), "cause", eviction.Cause)
	}
	metrics.Evictions.WithLabelValues(eviction.Cause).Inc()
	return err
}

// statusOf returns what writes the eviction into the pod's status.
func statusOf(eviction decide.Eviction) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		if status == nil {
			return
		}
		status.Phase = v1.PodFailed
		status.Reason = Reason
		status.Message = eviction.Message
		if !eviction.Disruption {
			return
		}
		podutil.UpdatePodCondition(status, &v1.PodCondition{
			Type:               v1.DisruptionTarget,
			ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(status, eviction.Pod.Generation, v1.DisruptionTarget),
			Status:             v1.ConditionTrue,
			Reason:             v1.PodReasonTerminationByKubelet,
			Message:            eviction.Message,
		})
	}
}
