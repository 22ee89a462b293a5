package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestAReportOfRolloutsMustHaveSeenEachCluster(t *testing.T) {
	report := RolloutsReport{Clusters: 3, Took: []time.Duration{3 * time.Second, time.Second}, Begun: 6}
	require.NoError(t, report.Check())
	assert.Equal(t, [2]string{"until one is complete: median, longest", "3s, 3s"}, report.Rows()[1])
	report.Begun = 5
	require.EqualError(t, report.Check(), "5 clusters were seen to get a version, and not 6")
	require.Error(t, RolloutsReport{Clusters: 3}.Check(), "no rollout shows nothing")
	report.Violations = []string{"two at a time"}
	require.EqualError(t, report.Check(), "1 violations:\ntwo at a time")
}

func TestAWorkCarriesAVersionWhenItWasAppliedWithIt(t *testing.T) {
	applied := func(kind string, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: generation}
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	assert.Empty(t, versionIn(work))
	work.Spec.Workload.Manifests = []workv1.Manifest{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}},
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"image":"registry.example.com/rolling:v12","name":"agent"}`)}},
	}
	work.Status.Conditions = []metav1.Condition{applied(workv1.WorkApplied, 2), applied(workv1.WorkAvailable, 1)}
	require.ErrorContains(t, carries(work, "v1"), `the work has version "v12"`)
	require.ErrorContains(t, carries(work, "v12"), "is not Available")
	work.Status.Conditions[1].ObservedGeneration = 2
	require.NoError(t, carries(work, "v12"))
}

func TestAProgressionIsCompleteWithTheTemplateOfTheVersion(t *testing.T) {
	hash := func(name, hash string) *addonv1beta1.ConfigSpecHash {
		return &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: hash}
	}
	for sentence, c := range map[string]struct {
		desired, applied *addonv1beta1.ConfigSpecHash
		reason, failed   string
	}{
		"complete":          {hash("rolling-v2", "a"), hash("rolling-v2", "a"), addonv1beta1.ProgressingReasonCompleted, ""},
		"another template":  {hash("rolling-v1", "a"), hash("rolling-v1", "a"), addonv1beta1.ProgressingReasonCompleted, "wants"},
		"not applied":       {hash("rolling-v2", "a"), nil, addonv1beta1.ProgressingReasonCompleted, "wants"},
		"applied of before": {hash("rolling-v2", "a"), hash("rolling-v1", "b"), addonv1beta1.ProgressingReasonCompleted, "wants"},
		"it says otherwise": {hash("rolling-v2", "a"), hash("rolling-v2", "a"), addonv1beta1.ProgressingReasonProgressing, "Progressing"},
	} {
		t.Run(sentence, func(t *testing.T) {
			management := &addonv1beta1.ClusterManagementAddOn{}
			management.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
				ConfigReferences: []addonv1beta1.InstallConfigReference{{DesiredConfig: c.desired, LastAppliedConfig: c.applied}},
				Conditions:       []metav1.Condition{{Type: "Progressing", Reason: c.reason}},
			}}
			err := progressed(management, "v2")
			if c.failed == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.failed)
		})
	}
	require.ErrorContains(t, progressed(&addonv1beta1.ClusterManagementAddOn{}, "v2"), "there are 0 progressions")
}
