package health

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

func fedBack(values map[string]int64) []Work {
	m := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "ns", Name: "d"},
		Conditions:   []metav1.Condition{{Type: conditionFeedback, Status: metav1.ConditionTrue, Reason: reasonFeedback}},
	}
	for name, value := range values {
		m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
			Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
		})
	}
	w := &workv1.ManifestWork{}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{m}
	return []Work{{ManifestWork: w, Objects: []Object{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d", Replicas: 3}}}}
}

// What the spec on the cluster asks for counts where it is known: an autoscaler, or a person, wrote it with the leave of
// a manifest whose replicas are ignored.
func TestAScaledDeploymentHasRolledOut(t *testing.T) {
	assert.Empty(t, RollingOut(fedBack(map[string]int64{
		"SpecReplicas": 2, "Replicas": 2, "ReadyReplicas": 2, "AvailableReplicas": 2, "UpdatedReplicas": 2,
	})), "all pods that the spec asks for are ready and of the present version")
}

// During a rolling update a Deployment has more pods than its spec asks for, and all of the present version.
func TestASurgeIsNoFormerVersion(t *testing.T) {
	assert.Empty(t, RollingOut(fedBack(map[string]int64{
		"SpecReplicas": 3, "Replicas": 3, "ReadyReplicas": 3, "AvailableReplicas": 3, "UpdatedReplicas": 3,
	})))
}

// The author of an add-on has rules of its own for a Deployment that the probe of the add-on does not judge.
//
// Shows: hub/rolls-out-pods
func TestFeedbackThatAnAuthorAskedForSaysNothingAboutPods(t *testing.T) {
	assert.Empty(t, RollingOut(fedBack(map[string]int64{"ObservedGeneration": 4})))
}
