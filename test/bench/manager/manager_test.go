package manager

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
)

func TestParseSizes(t *testing.T) {
	sizes, err := ParseSizes("100x1, 3000x20, 9x1+4")
	require.NoError(t, err)
	assert.Equal(t, []Size{{Clusters: 100, AddOns: 1}, {Clusters: 3000, AddOns: 20}, {9, 1, 4}}, sizes)
	assert.Equal(t, "3000x20", sizes[1].String())
	assert.Equal(t, Size{Clusters: 9, AddOns: 5}, sizes[2].grown())
	for _, wrong := range []string{"", "100", "x1", "100x", "0x1", "1x0", "axb", "1x1,", "1x1+", "1x1+0", "1x1+b"} {
		_, err := ParseSizes(wrong)
		assert.Error(t, err, wrong)
	}
}

func TestTemplatesDifferByRevision(t *testing.T) {
	first, err := template("bench-00", 1)
	require.NoError(t, err)
	second, err := template("bench-00", 2)
	require.NoError(t, err)
	assert.NotEqual(t, first.Spec, second.Spec)
	assert.Equal(t, config("bench-00", 2).Name, second.Name)
	for _, manifest := range first.Spec.AgentSpec.Workload.Manifests {
		var object unstructured.Unstructured
		require.NoError(t, json.Unmarshal(manifest.Raw, &object))
		assert.NotEmpty(t, object.GetKind())
	}
}

func TestAuditPolicyIsYAML(t *testing.T) {
	var policy struct {
		Rules []struct {
			Level string   `json:"level"`
			Users []string `json:"users"`
		} `json:"rules"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(auditPolicy()), &policy))
	require.Len(t, policy.Rules, 3)
	assert.Contains(t, policy.Rules[1].Users, managerUser())
}

// progressing is the condition Progressing with a reason.
func progressing(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: addonv1alpha1.ManagedClusterAddOnConditionProgressing, Reason: reason}}
}

// hash is a config at a hash.
func hash(name, hash string) *addonv1alpha1.ConfigSpecHash {
	return &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: name}, SpecHash: hash}
}

func TestCompleted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		desired, last *addonv1alpha1.ConfigSpecHash
		want          bool
	}{
		"in place":             {"Completed", hash("a-r2", "1"), hash("a-r2", "1"), true},
		"the former template":  {"Completed", hash("a-r1", "1"), hash("a-r1", "1"), false},
		"not yet in place":     {"Completed", hash("a-r2", "1"), hash("a-r1", "1"), false},
		"edited meanwhile":     {"Completed", hash("a-r2", "2"), hash("a-r2", "1"), false},
		"never applied":        {"Completed", hash("a-r2", "1"), nil, false},
		"nothing is desired":   {"Completed", nil, nil, false},
		"it is still on a way": {"Progressing", hash("a-r2", "1"), hash("a-r2", "1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				Conditions: progressing(tc.reason),
				ConfigReferences: []addonv1alpha1.ConfigReference{{
					ConfigGroupResource: templates(), DesiredConfig: tc.desired, LastAppliedConfig: tc.last,
				}},
			}}
			assert.Equal(t, tc.want, completed(addOn, "a-r2"))

			cma := management("a", 2)
			assert.False(t, installed(cma, 2), "without a status")
			cma.Status.InstallProgressions = []addonv1alpha1.InstallProgression{{
				Conditions: progressing(tc.reason),
				ConfigReferences: []addonv1alpha1.InstallConfigReference{{
					ConfigGroupResource: templates(), DesiredConfig: tc.desired, LastAppliedConfig: tc.last,
				}},
			}}
			assert.Equal(t, tc.want, installed(cma, 2))
		})
	}
	assert.False(t, completed(&addonv1alpha1.ManagedClusterAddOn{}, "a-r2"))
}

func TestBudgetsBelongToTheirSize(t *testing.T) {
	b := budget{took: time.Second, requests: 7, processor: time.Second, memory: 64}
	assert.Equal(t, b, (&run{Options: Options{Size: budgeted()}}).budgeted(b))
	assert.Equal(t, budget{requests: 7}, (&run{Options: Options{Size: Size{100, 1, 0}}}).budgeted(b))
	assert.Equal(t, budget{requests: 7, memory: 800}, (&run{Options: Options{Size: Size{3000, 20, 0}}}).budgeted(b))
}

func TestCompareWithTheSmallest(t *testing.T) {
	r := &run{
		Table: &measure.Table{Log: io.Discard}, Options: Options{Size: Size{3000, 20, 0}}, title: "3000x20: ",
		perDeletion: 9 * time.Millisecond, perChange: cost{took: 120 * time.Millisecond, processor: 40 * time.Millisecond},
	}
	for _, nothing := range []*run{nil, {}} {
		r.smallest = nothing
		r.compareChange()
		r.compareDeletion()
		assert.Empty(t, r.Figures, "nothing to compare with")
	}
	r.smallest = &run{
		Options: Options{Size: Size{100, 1, 0}}, perDeletion: 3 * time.Millisecond,
		perChange: cost{took: 100 * time.Millisecond, processor: 20 * time.Millisecond},
	}
	r.compareChange()
	r.compareDeletion()
	assert.Equal(t, []measure.Figure{
		{Name: "3000x20: one change beside one at 100x1, time", Value: "1.20x", Budget: "1.3x", Held: true},
		{Name: "3000x20: one change beside one at 100x1, processor", Value: "2.00x", Budget: "1.3x"},
		{Name: "3000x20: one deletion with a hook beside one at 100x1, processor", Value: "3.00x", Budget: "1.3x"},
	}, r.Figures)
}

// A fleet that grows is measured at both sizes, and ended once.
func TestAFleetGrows(t *testing.T) {
	r := &run{Options: Options{Size: Size{9, 1, 4}}, title: "9x1: "}
	require.NoError(t, r.grow(t.Context()))
	assert.Equal(t, "9x5: ", r.title)
	assert.Equal(t, 1, r.there)
	assert.Equal(t, Size{9, 5, 0}, r.Size)
}

// The last object of the template is the hook; the others are those without one.
func TestATemplateHasAHook(t *testing.T) {
	plain, err := template("bench-00", 1)
	require.NoError(t, err)
	with, err := hooked("bench-00", 1)
	require.NoError(t, err)
	last := len(with.Spec.AgentSpec.Workload.Manifests) - 1
	assert.Equal(t, plain.Spec.AgentSpec.Workload.Manifests, with.Spec.AgentSpec.Workload.Manifests[:last])
	var hook unstructured.Unstructured
	require.NoError(t, json.Unmarshal(with.Spec.AgentSpec.Workload.Manifests[last].Raw, &hook))
	assert.Equal(t, "Job", hook.GetKind())
	assert.Contains(t, hook.GetAnnotations(), names.AnnotationPreDelete)
}

func TestLoad(t *testing.T) {
	before := load{etcd: time.Second, apiserver: 2 * time.Second, controllers: 3 * time.Second, own: 4 * time.Second}
	after := load{etcd: 2 * time.Second, apiserver: 4 * time.Second, controllers: 6 * time.Second, own: 8 * time.Second}
	assert.Equal(t, "API server 2.0s, etcd 1.0s, controllers 3.0s, benchmark and clusters 4.0s",
		after.since(before).String())
}
