package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// goAgents are the add-ons of the stories that are made of Go code.
func goAgents(t suite.T) addon.Fixed {
	t.Helper()
	agents, err := addon.NewFixed(gauge{})
	require.NoError(t, err)
	return agents
}

// gauge is the agent of an add-on that is made of Go code. It is healthy when its state is Ready and a pod of it is; its
// objects fill several works.
type gauge struct{}

// gaugeState is the name of the ConfigMap with the state of the agent. The agent itself writes it.
const gaugeState = "gauge-state"

// About implements addon.Agent.
func (gauge) About() addon.About { return addon.About{Name: "gauge"} }

// Resolve implements addon.Agent.
func (gauge) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	phase := []workv1.FeedbackRule{{
		Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "phase", Path: ".data.phase"}},
	}}
	return addon.Resolved{Setup: addon.Setup{
		Namespace: names.NamespaceAgentAddon, Health: addon.HealthWork,
		WorkProbe: &addon.WorkProbe{Check: checkGauge, Fields: []addon.ProbeField{
			{
				ResourceIdentifier: workv1.ResourceIdentifier{
					Resource: "configmaps", Namespace: names.NamespaceAgentAddon, Name: "*-state",
				},
				FeedbackRules: phase,
			},
			{
				ResourceIdentifier: workv1.ResourceIdentifier{
					Group: "apps", Resource: "deployments", Namespace: "*", Name: "gauge",
				},
				FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
			},
		}},
	}}, nil
}

// checkGauge is the check of the author.
func checkGauge(r addon.ProbeRequest) error {
	seen := 0
	for _, result := range r.Results {
		phase, known := result.Text("phase")
		if known && phase != "Ready" {
			return fmt.Errorf("the gauge on %s is %s", r.Cluster.Name, phase)
		}
		if ready, counted := result.Integer("ReadyReplicas"); known || (counted && ready > 0) {
			seen++
		}
	}
	if seen != 2 {
		return errors.New("the gauge has no pod")
	}
	return nil
}

// Render implements addon.Agent.
func (gauge) Render(context.Context, addon.Request) (addon.Rendering, error) {
	object := func(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(names.NamespaceAgentAddon)
		u.SetName(name)
		return u
	}
	app := map[string]any{"app": "gauge"}
	r := addon.Rendering{
		Objects: []*unstructured.Unstructured{
			object("v1", "ConfigMap", gaugeState, map[string]any{"data": map[string]any{"phase": "Starting"}}),
			object("apps/v1", "Deployment", "gauge", map[string]any{"spec": map[string]any{
				"selector": map[string]any{"matchLabels": app},
				"template": map[string]any{
					"metadata": map[string]any{"labels": app},
					"spec": map[string]any{"containers": []any{
						map[string]any{"name": "agent", "image": "registry.example.com/gauge:v1"},
					}},
				},
			}}),
		},
		ManifestConfigs: []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Resource: "configmaps", Namespace: names.NamespaceAgentAddon, Name: gaugeState,
			},
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		}},
	}
	const large = 250 << 10
	for i := range 3 {
		r.Objects = append(r.Objects, object("v1", "ConfigMap", fmt.Sprintf("gauge-data-%d", i),
			map[string]any{"data": map[string]any{"table": strings.Repeat("x", large)}}))
	}
	return r, nil
}

// SigningCA implements addon.Agent.
func (gauge) SigningCA(context.Context, addon.Request, string) (addon.SigningCA, bool, error) {
	return addon.SigningCA{}, false, nil
}

// SharedPermissions implements addon.Agent.
func (gauge) SharedPermissions(context.Context) ([]addon.Permission, error) { return nil, nil }

// Shows: hub/story-probe, hub/health-probes, hub/splitting
func TestTheHealthOfAnAddOnIsWhatItsAuthorReads(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "gauge"}
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}}
	management.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	require.NoError(t, plane.Client.Create(t.Context(), management))
	for _, cluster := range []string{east, west} {
		require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn},
		}))
	}
	const available = addonv1beta1.ManagedClusterAddOnConditionAvailable
	for _, cluster := range []string{east, west} {
		s.says(cluster, available, metav1.ConditionFalse, "ProbeUnavailable", "the gauge on "+cluster+" is Starting")
	}
	var works workv1.ManifestWorkList
	require.NoError(t, plane.Client.List(t.Context(), &works, client.InNamespace(west),
		client.MatchingLabels{names.LabelAddonName: s.addOn}))
	assert.Greater(t, len(works.Items), 1, "the objects do not fit into one work")

	phase := func(phase string) {
		state := get(t, west, names.NamespaceAgentAddon, gaugeState, &corev1.ConfigMap{})
		state.Data["phase"] = phase
		require.NoError(t, clusters[west].Client.Update(t.Context(), state))
	}
	phase("Ready")
	s.says(west, available, metav1.ConditionTrue, "ProbeAvailable")
	phase("Tilted")
	s.says(west, available, metav1.ConditionFalse, "ProbeUnavailable", "the gauge on west is Tilted")
	phase("Ready")
	s.says(west, available, metav1.ConditionTrue, "ProbeAvailable")
	s.says(east, available, metav1.ConditionFalse, "ProbeUnavailable", "the gauge on east is Starting")
	s.says(west, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse,
		addonv1beta1.ProgressingReasonCompleted)

	s.deleteManagement()
	for _, cluster := range []string{east, west} {
		goes(t, cluster, &corev1.ConfigMap{ObjectMeta: in(gaugeState)}, &corev1.ConfigMap{ObjectMeta: in("gauge-data-0")})
	}
}
