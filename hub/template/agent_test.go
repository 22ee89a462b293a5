package template

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// configs is a reader of a few objects, by kind, namespace and name.
type configs struct {
	client.Reader
	objects []*unstructured.Unstructured
	err     error
}

func (c *configs) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if c.err != nil {
		return c.err
	}
	u, ok := out.(*unstructured.Unstructured)
	if !ok {
		return errors.New("only unstructured objects are read")
	}
	for _, o := range c.objects {
		if o.GetKind() == u.GetKind() && o.GetNamespace() == key.Namespace && o.GetName() == key.Name {
			u.Object = o.Object
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: u.GetKind()}, key.Name)
}

func templateObject(name, addOn, data string) *unstructured.Unstructured {
	u, _ := confighash.New(confighash.Template())
	u.SetName(name)
	u.Object["spec"] = map[string]any{
		"addonName": addOn,
		"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cm", "namespace": "ns"},
			"data": map[string]any{"k": data},
		}}}},
		"registration": []any{map[string]any{"type": "KubeClient"}},
	}
	return u
}

func configObject(namespace, name, value string) *unstructured.Unstructured {
	u, _ := confighash.New(confighash.DeploymentConfig())
	u.SetNamespace(namespace)
	u.SetName(name)
	u.Object["spec"] = map[string]any{
		"customizedVariables": []any{map[string]any{"name": "V", "value": value}},
	}
	return u
}

func hashOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	hash, err := confighash.SpecHash(u)
	require.NoError(t, err)
	return hash
}

func reference(
	resource addonv1beta1.ConfigGroupResource, namespace, name, hash string,
) addonv1beta1.ConfigReference {
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: resource, DesiredConfig: &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name}, SpecHash: hash,
		},
	}
}

// world is a hub with one template add-on, all in order.
type world struct {
	agent   *agent
	configs *configs
	addOn   *addonv1beta1.ManagedClusterAddOn
	cluster *clusterv1.ManagedCluster
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tmpl, config := templateObject("tmpl", "a", "{{V}}"), configObject("cfg", "config", "value")
	w := &world{
		configs: &configs{objects: []*unstructured.Unstructured{tmpl, config}},
		addOn:   &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}},
		cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
	}
	w.addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{
		reference(confighash.DeploymentConfig(), "cfg", "config", hashOf(t, config)),
		reference(confighash.Template(), "", "tmpl", hashOf(t, tmpl)),
	}
	w.addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionTrue}}
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	management.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{
		{ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: "tmpl"}},
		{
			ConfigGroupResource: confighash.DeploymentConfig(),
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "cfg", Name: "config"},
		},
	}
	w.agent = &agent{configs: w.configs, management: management, home: "home"}
	return w
}

func TestAgentAnswers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	rendering, err := w.agent.Render(ctx, w.cluster, w.addOn)
	require.NoError(t, err)
	require.Len(t, rendering.Objects, 1)
	assert.Equal(t, map[string]any{"k": "value"}, rendering.Objects[0].Object["data"])
	setup, err := w.agent.Setup(ctx, w.cluster, w.addOn)
	require.NoError(t, err)
	assert.Equal(t, addon.Setup{Namespace: "open-cluster-management-agent-addon", Health: addon.HealthWorkloads}, setup)
	registrations, err := w.agent.Registrations(ctx, w.cluster, w.addOn)
	require.NoError(t, err)
	assert.Len(t, registrations, 1)
	_, found, err := w.agent.SigningCA(ctx, w.cluster, w.addOn, "s.io/s")
	require.NoError(t, err)
	assert.False(t, found)
	assert.Equal(t, "a", w.agent.About().Name)
}

func TestAgentWaitsOrRefuses(t *testing.T) {
	const (
		ready = iota
		notReady
		invalid
		transient
	)
	tests := map[string]struct {
		change func(t *testing.T, w *world)
		// render and register are what becomes of Render and of Registrations.
		render, register int
		says             string
	}{
		"all in order": {func(*testing.T, *world) {}, ready, ready, ""},
		"not configured yet": {func(_ *testing.T, w *world) {
			w.addOn.Status.Conditions = nil
		}, notReady, ready, "waiting for the rollout to configure the add-on"},
		"configured is false": {func(_ *testing.T, w *world) {
			w.addOn.Status.Conditions[0].Status = metav1.ConditionFalse
		}, notReady, ready, "waiting for the rollout to configure the add-on"},
		"no template chosen": {func(_ *testing.T, w *world) {
			w.addOn.Status.ConfigReferences = w.addOn.Status.ConfigReferences[:1]
		}, notReady, notReady, "waiting for the rollout to choose an AddOnTemplate"},
		"no hash yet": {func(_ *testing.T, w *world) {
			w.addOn.Status.ConfigReferences[1].DesiredConfig.SpecHash = ""
		}, notReady, notReady, "waiting for the rollout to note the content of AddOnTemplate tmpl"},
		"the template is not there": {func(_ *testing.T, w *world) {
			w.addOn.Status.ConfigReferences[1].DesiredConfig.SpecHash = ""
			w.configs.objects = w.configs.objects[1:]
		}, invalid, invalid, "AddOnTemplate tmpl does not exist: create it, or correct the configuration of add-on a"},
		"the configuration is not there": {func(_ *testing.T, w *world) {
			w.configs.objects = w.configs.objects[:1]
		}, invalid, ready, "AddOnDeploymentConfig cfg/config does not exist: create it, or correct the configuration of add-on a"},
		"the template changed before the rollout": {func(t *testing.T, w *world) {
			t.Helper()
			require.NoError(t, unstructured.SetNestedField(w.configs.objects[0].Object, []any{}, "spec", "registration"))
		}, notReady, ready, "AddOnTemplate tmpl has changed: waiting for the rollout to reach this cluster"},
		"the configuration changed before the rollout": {func(_ *testing.T, w *world) {
			w.configs.objects[1].Object["spec"] = map[string]any{}
		}, notReady, ready, "AddOnDeploymentConfig cfg/config has changed: waiting for the rollout to reach this cluster"},
		"a template of another add-on that nobody asked for": {func(t *testing.T, w *world) {
			t.Helper()
			other := templateObject("other", "b", "x")
			w.configs.objects = append(w.configs.objects, other)
			w.addOn.Status.ConfigReferences[1] = reference(confighash.Template(), "", "other", hashOf(t, other))
		}, notReady, notReady, "status.configReferences names AddOnTemplate other, which neither"},
		"the same asked for by the add-on's own spec": {func(t *testing.T, w *world) {
			t.Helper()
			other := templateObject("other", "b", "x")
			w.configs.objects = append(w.configs.objects, other)
			w.addOn.Status.ConfigReferences[1] = reference(confighash.Template(), "", "other", hashOf(t, other))
			w.addOn.Spec.Configs = []addonv1beta1.AddOnConfig{{
				ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: "other"},
			}}
		}, ready, ready, ""},
		"another template that says to be made for the add-on": {func(t *testing.T, w *world) {
			t.Helper()
			other := templateObject("other", "a", "x")
			w.configs.objects = append(w.configs.objects, other)
			w.addOn.Status.ConfigReferences[1] = reference(confighash.Template(), "", "other", hashOf(t, other))
		}, ready, ready, ""},
		"a configuration that nobody asked for": {func(t *testing.T, w *world) {
			t.Helper()
			other := configObject("secret", "config", "x")
			w.configs.objects = append(w.configs.objects, other)
			w.addOn.Status.ConfigReferences[0] = reference(confighash.DeploymentConfig(), "secret", "config", hashOf(t, other))
		}, notReady, ready, "status.configReferences names AddOnDeploymentConfig secret/config, which neither"},
		"a configuration that the rollout still remembers": {func(t *testing.T, w *world) {
			t.Helper()
			old := configObject("cfg", "old", "x")
			w.configs.objects = append(w.configs.objects, old)
			w.addOn.Status.ConfigReferences[0] = reference(confighash.DeploymentConfig(), "cfg", "old", hashOf(t, old))
			w.agent.management.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
				ConfigReferences: []addonv1beta1.InstallConfigReference{{
					ConfigGroupResource: confighash.DeploymentConfig(),
					LastKnownGoodConfig: &addonv1beta1.ConfigSpecHash{
						ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "cfg", Name: "old"},
					},
				}},
			}}
		}, ready, ready, ""},
		"a hub that cannot be read": {func(_ *testing.T, w *world) {
			w.configs.err = errors.New("broken pipe")
		}, transient, transient, "reading AddOnTemplate tmpl: broken pipe"},
	}
	class := func(err error) int {
		switch {
		case err == nil:
			return ready
		case addon.IsNotReady(err):
			return notReady
		case addon.IsInvalid(err):
			return invalid
		}
		return transient
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.change(t, w)
			_, err := w.agent.Render(t.Context(), w.cluster, w.addOn)
			assert.Equal(t, test.render, class(err), "%v", err)
			if err != nil {
				assert.Contains(t, err.Error(), test.says)
			}
			_, err = w.agent.Registrations(t.Context(), w.cluster, w.addOn)
			assert.Equal(t, test.register, class(err), "%v", err)
		})
	}
}

func TestUsesTemplates(t *testing.T) {
	management := &addonv1beta1.ClusterManagementAddOn{}
	assert.False(t, UsesTemplates(management))
	management.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: confighash.Template()}}
	assert.True(t, UsesTemplates(management))
}
