package health_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/health"
)

// Shows: hub/rolls-out-pods
func TestAWorkloadWithPodsThatAreNotReadyIsRollingOut(t *testing.T) {
	fedBack := func(resource string, values map[string]int64) *workv1.ManifestWork {
		condition := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{
			Group: "apps", Resource: resource, Namespace: "ns", Name: "n",
		}}
		for name, value := range values {
			condition.StatusFeedbacks.Values = append(condition.StatusFeedbacks.Values, workv1.FeedbackValue{
				Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
			})
		}
		if values != nil {
			condition.Conditions = []metav1.Condition{{
				Type: "StatusFeedbackSynced", Status: metav1.ConditionTrue, Reason: "StatusFeedbackSynced",
			}}
		}
		return &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: resource, Namespace: "ns", Name: "n"},
				FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
			}}}, Status: workv1.ManifestWorkStatus{
				ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{condition}},
			},
		}
	}
	deployment := health.Object{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "n", Replicas: 1}
	daemon := health.Object{Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: "n", Replicas: -1}
	unstated := deployment
	unstated.Replicas = -1
	set := health.Object{Group: "apps", Kind: "StatefulSet", Namespace: "ns", Name: "n", Replicas: -1}
	// answered holds what an agent feeds back that is asked for all values; Kubernetes omits those that are 0.
	answered := func(spec, pods, ready, updated int64) map[string]int64 {
		values := map[string]int64{"SpecReplicas": spec, "Replicas": pods, "ReadyReplicas": ready, "UpdatedReplicas": updated}
		maps.DeleteFunc(values, func(name string, value int64) bool { return name != "SpecReplicas" && value == 0 })
		return values
	}
	pods := func(ready, all int64) map[string]int64 {
		return map[string]int64{"ReadyReplicas": ready, "Replicas": all}
	}
	for sentence, tc := range map[string]struct {
		object   health.Object
		resource string
		values   map[string]int64
		want     []string
	}{
		"all pods are ready":            {deployment, "deployments", pods(1, 1), nil},
		"nothing is known":              {deployment, "deployments", nil, nil},
		"a new pod beside the old one":  {deployment, "deployments", pods(1, 2), []string{"Deployment ns/n has 1 ready of 2 pods"}},
		"fewer pods than there must be": {deployment, "deployments", pods(0, 0), []string{"Deployment ns/n has 0 ready of 1 pods"}},
		"no pod is ready, of which Kubernetes omits the number": {
			deployment, "deployments", map[string]int64{"Replicas": 1}, []string{"Deployment ns/n has 0 ready of 1 pods"},
		},
		"no pod is there, for a quota refuses them": {
			deployment, "deployments", map[string]int64{}, []string{"Deployment ns/n has 0 ready of 1 pods"},
		},
		"no pod of a DaemonSet, which need not have one": {daemon, "daemonsets", map[string]int64{}, nil},
		"a quota refuses every pod of the present version, and the old ones are ready": {
			unstated, "deployments", answered(3, 3, 3, 0), []string{"Deployment ns/n has 0 of 3 pods of the present version"},
		},
		"the same with a number of pods in the manifest": {
			deployment, "deployments", answered(1, 1, 1, 0), []string{"Deployment ns/n has 0 of 1 pods of the present version"},
		},
		"an old pod is left": {
			unstated, "deployments", answered(3, 4, 4, 3), []string{"Deployment ns/n has 3 of 4 pods of the present version"},
		},
		"numbers of before the present version, which nobody has looked at yet": {
			deployment, "deployments", map[string]int64{
				"SpecReplicas": 1, "Replicas": 1, "ReadyReplicas": 1, "UpdatedReplicas": 1, "Generation": 2, "ObservedGeneration": 1,
			}, []string{"Deployment ns/n was changed, and what it counts is from before"},
		},
		"numbers of the present version": {
			deployment, "deployments", map[string]int64{
				"SpecReplicas": 1, "Replicas": 1, "ReadyReplicas": 1, "UpdatedReplicas": 1, "Generation": 2, "ObservedGeneration": 2,
			}, nil,
		},
		"a Deployment that nobody has looked at": {
			deployment, "deployments", map[string]int64{"SpecReplicas": 1, "Generation": 1},
			[]string{"Deployment ns/n was changed, and what it counts is from before"},
		},
		"all pods are of the present version": {unstated, "deployments", answered(3, 3, 3, 3), nil},
		"no pod of a Deployment that states no number": {
			unstated, "deployments", answered(1, 0, 0, 0), []string{"Deployment ns/n has 0 ready of 1 pods"},
		},
		"no pod of a StatefulSet that states no number": {
			set, "statefulsets", answered(1, 0, 0, 0), []string{"StatefulSet ns/n has 0 ready of 1 pods"},
		},
		"pods of an earlier version, which a StatefulSet may keep": {set, "statefulsets", answered(2, 2, 2, 0), nil},
		"an autoscaler wants no pods":                              {unstated, "deployments", answered(0, 0, 0, 0), nil},
		"what is not asked for is not known":                       {unstated, "deployments", map[string]int64{}, nil},
		"an agent that was not asked for pods of the present version": {
			deployment, "deployments", map[string]int64{"Replicas": 1, "ReadyReplicas": 1, "AvailableReplicas": 1}, nil,
		},
		"an object that is switched off": {
			health.Object{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "n"}, "deployments", pods(0, 1), nil,
		},
		"a pod of a DaemonSet is not ready": {
			daemon, "daemonsets", map[string]int64{"NumberReady": 2, "DesiredNumberScheduled": 3},
			[]string{"DaemonSet ns/n has 2 ready of 3 pods"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			work := health.Work{ManifestWork: fedBack(tc.resource, tc.values), Objects: []health.Object{tc.object}}
			assert.Equal(t, tc.want, health.RollingOut([]health.Work{work}))
		})
	}
}
