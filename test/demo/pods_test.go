package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheStatusOfAPodIsWrittenOnce(t *testing.T) {
	job := []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: new(true)}}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	tests := map[string]struct {
		owners  []metav1.OwnerReference
		missing string
		held    bool
		phase   corev1.PodPhase
		ready   corev1.ConditionStatus
		waiting string
	}{
		"a container runs":      {phase: corev1.PodRunning, ready: yes},
		"no image":              {missing: "i:v1", phase: corev1.PodPending, ready: no, waiting: "ImagePullBackOff"},
		"another image":         {missing: "i:v2", phase: corev1.PodRunning, ready: yes},
		"the pod of a Job ends": {owners: job, phase: corev1.PodSucceeded, ready: no},
		"a Job is held":         {owners: job, held: true, phase: corev1.PodRunning, ready: yes},
		"only Jobs are held":    {held: true, phase: corev1.PodRunning, ready: yes},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
			pod.Status.Phase = corev1.PodPending
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:v1"}}
			status, changed := podStatus(pod, test.missing, test.held)
			assert.True(t, changed)
			assert.Equal(t, test.phase, status.Phase)
			assert.Equal(t, test.ready, status.Conditions[1].Status)
			if test.waiting != "" {
				assert.Equal(t, test.waiting, status.ContainerStatuses[0].State.Waiting.Reason)
			}
			pod.Status = status
			_, changed = podStatus(pod, test.missing, test.held)
			assert.False(t, changed, "what is so already is not written again")
		})
	}
}
