package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestAStateHasTemplateHostAndCause(t *testing.T) {
	version := func(name string) *addonv1beta1.ConfigSpecHash {
		return &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: name}
	}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster1", Name: "web", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
		Annotations: map[string]string{addonv1beta1.HostingClusterNameAnnotationKey: "cluster2"},
	}}
	addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "addontemplates"},
		DesiredConfig:       version("v2"), LastAppliedConfig: version("v1"),
	}}
	addOn.Status.Conditions = []metav1.Condition{
		condition("Available", metav1.ConditionFalse, "not well: no image"),
		condition("addon.spokelet.io/WorkloadsReady", metav1.ConditionFalse, "no image"),
		condition("ManifestApplied", metav1.ConditionTrue, "applied"),
		condition("HostingClusterValidity", metav1.ConditionTrue, "valid"),
	}
	var out strings.Builder
	(&node{children: []node{stateNode(addOn)}}).print(&out, "", 200)
	assert.Equal(t, "└─ cluster1  not available, template v1, gets v2, hosted on cluster2, being deleted\n"+
		"   ├─ Available=False  Because: not well: no image\n"+
		"   └─ HostingClusterValidity=True  Because: valid\n", out.String())
}

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
