package spokes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"agent"},` +
		`"spec":{"replicas":2,"template":{"spec":{"containers":[{"image":"agent:r2"}]}}}}`
	daemonSet = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"n","name":"agent"}}`
	jobHook   = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"n","name":"agent"}}`
	podHook   = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"agent"},` +
		`"spec":{"restartPolicy":"Never"}}`
	podOther = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"agent"}}`
	custom   = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"n","name":"agent"}}`
)

// work has one manifest and asks for the well-known status of it.
func work(manifest, resource, group string, finalizers ...string) *workv1.ManifestWork {
	return &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w", Generation: 3, Finalizers: finalizers},
		Spec: workv1.ManifestWorkSpec{
			Workload: workv1.ManifestsTemplate{
				Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}},
			},
			ManifestConfigs: []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{
					Group: group, Resource: resource, Namespace: "n", Name: "agent",
				},
				FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
			}},
		},
	}
}

// values are the feedback values of the only manifest.
func values(status *workv1.ManifestWorkStatus) map[string]any {
	all := map[string]any{}
	for _, value := range status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
		switch value.Value.Type {
		case workv1.Integer:
			all[value.Name] = int(*value.Value.Integer)
		case workv1.String:
			all[value.Name] = *value.Value.String
		default:
			all[value.Name] = value.Value.Type
		}
	}
	return all
}

func TestAnswerReports(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		manifest, resource, group string
		outcome                   Outcome
		applied, available        metav1.ConditionStatus
		values                    map[string]any
	}{
		"a Deployment": {
			deployment, "deployments", "apps", Healthy, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"ReadyReplicas": 2, "Replicas": 2, "AvailableReplicas": 2},
		},
		"a Deployment without ready pods": {
			deployment, "deployments", "apps", Unready, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"ReadyReplicas": 0, "Replicas": 2, "AvailableReplicas": 0},
		},
		"a Deployment that the cluster refuses": {
			deployment, "deployments", "apps", Refused, metav1.ConditionFalse, metav1.ConditionFalse, map[string]any{},
		},
		"a DaemonSet": {
			daemonSet, "daemonsets", "apps", Healthy, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"NumberReady": 3, "DesiredNumberScheduled": 3, "NumberAvailable": 3},
		},
		"a DaemonSet without ready pods": {
			daemonSet, "daemonsets", "apps", Unready, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"NumberReady": 0, "DesiredNumberScheduled": 3, "NumberAvailable": 0},
		},
		"a Job": {
			jobHook, "jobs", "batch", Healthy, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"JobComplete": "True", "JobSucceeded": 1},
		},
		"a Job that runs": {
			jobHook, "jobs", "batch", Unready, metav1.ConditionTrue, metav1.ConditionTrue, map[string]any{},
		},
		"a Pod that ends": {
			podHook, "pods", "", Healthy, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"PodReady": "False", "PodPhase": "Succeeded"},
		},
		"a Pod that runs": {
			podOther, "pods", "", Healthy, metav1.ConditionTrue, metav1.ConditionTrue,
			map[string]any{"PodReady": "True", "PodPhase": "Running"},
		},
		"a kind that Kubernetes does not have": {
			custom, "widgets", "example.com", Healthy, metav1.ConditionTrue, metav1.ConditionTrue, map[string]any{},
		},
		"a manifest that nobody can read": {
			`{"kind":"Widget"}`, "widgets", "", Healthy, metav1.ConditionFalse, metav1.ConditionUnknown, map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewResponder()
			w := work(tc.manifest, tc.resource, tc.group)
			a := r.Answer(t.Context(), w, tc.outcome, now)
			require.NotNil(t, a.Status)
			assert.True(t, a.Finalize)
			assert.Equal(t, []string{names.FinalizerManifestWork}, a.Finalizers)
			for kind, want := range map[string]metav1.ConditionStatus{
				workv1.WorkApplied: tc.applied, workv1.WorkAvailable: tc.available,
			} {
				c := meta.FindStatusCondition(a.Status.Conditions, kind)
				require.NotNil(t, c, kind)
				assert.Equal(t, want, c.Status, "%s: %s", kind, c.Message)
				assert.Equal(t, int64(3), c.ObservedGeneration, kind)
			}
			assert.Equal(t, tc.values, values(a.Status))

			w.Status, w.Finalizers = *a.Status, a.Finalizers
			assert.True(t, Reported(w))
			assert.True(t, r.Answer(t.Context(), w, tc.outcome, now.Add(time.Hour)).Empty(), "it answers once")
		})
	}
}

func TestAnswerToChanges(t *testing.T) {
	r, now := NewResponder(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	answered := func(finalizers ...string) *workv1.ManifestWork {
		w := work(deployment, "deployments", "apps", append(finalizers, names.FinalizerManifestWork)...)
		w.Status = *r.Answer(t.Context(), w, Healthy, now).Status
		return w
	}
	t.Run("a new generation is reported", func(t *testing.T) {
		w := answered()
		w.Generation++
		assert.False(t, Reported(w))
		a := r.Answer(t.Context(), w, Healthy, now)
		assert.False(t, a.Finalize)
		require.NotNil(t, a.Status)
		w.Status = *a.Status
		assert.True(t, Reported(w))
	})
	t.Run("another outcome is reported", func(t *testing.T) {
		a := r.Answer(t.Context(), answered(), Unready, now)
		require.NotNil(t, a.Status)
		assert.Equal(t, 0, values(a.Status)["ReadyReplicas"])
	})
	t.Run("a silent cluster writes nothing", func(t *testing.T) {
		assert.True(t, r.Answer(t.Context(), work(deployment, "deployments", "apps"), Silent, now).Empty())
	})
	t.Run("a finalizer of others stays", func(t *testing.T) {
		w := work(deployment, "deployments", "apps", "other")
		assert.Equal(t, []string{"other", names.FinalizerManifestWork}, r.Answer(t.Context(), w, Healthy, now).Finalizers)
	})
	t.Run("a work that is deleted loses the finalizer and nothing else", func(t *testing.T) {
		w := answered("other")
		w.DeletionTimestamp = &metav1.Time{Time: now}
		a := r.Answer(t.Context(), w, Healthy, now)
		assert.Equal(t, Answer{Finalize: true, Finalizers: []string{"other"}}, a)
		w.Finalizers = a.Finalizers
		assert.True(t, r.Answer(t.Context(), w, Healthy, now).Empty())
	})
}

func TestOn(t *testing.T) {
	w := work(deployment, "deployments", "apps")
	assert.Equal(t, Refused, On(Refused, "agent:r2", "c1")(w))
	assert.Equal(t, Refused, On(Refused, "agent:r2")(w))
	assert.Equal(t, Healthy, On(Refused, "agent:r3", "c1")(w), "another revision")
	assert.Equal(t, Healthy, On(Refused, "agent:r2", "c2")(w), "another cluster")
}
