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
	"k8s.io/apimachinery/pkg/types"
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

func chosen(
	resource addonv1beta1.ConfigGroupResource, namespace, name, hash string,
) addon.ChosenConfig {
	return addon.ChosenConfig{ConfigGroupResource: resource, ConfigSpecHash: addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name}, SpecHash: hash,
	}}
}

// chooser is a rollout that chose what it says.
type chooser struct {
	choice addon.Choice
	named  []addonv1beta1.AddOnConfig
	err    error
}

func (c *chooser) Choose(context.Context, *addonv1beta1.ManagedClusterAddOn) (addon.Choice, error) {
	return c.choice, c.err
}

func (c *chooser) Named(context.Context, string) ([]addonv1beta1.AddOnConfig, error) {
	return c.named, c.err
}

// world is a hub with one template add-on, all in order.
type world struct {
	agent   *agent
	configs *configs
	chooser *chooser
	addOn   *addonv1beta1.ManagedClusterAddOn
	cluster *clusterv1.ManagedCluster
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tmpl, config := templateObject("tmpl", "a", "{{V}}"), configObject("cfg", "config", "value")
	w := &world{
		configs: &configs{objects: []*unstructured.Unstructured{tmpl, config}},
		chooser: &chooser{choice: addon.Choice{Configs: []addon.ChosenConfig{
			chosen(confighash.DeploymentConfig(), "cfg", "config", hashOf(t, config)),
			chosen(confighash.Template(), "", "tmpl", hashOf(t, tmpl)),
		}}},
		addOn:   &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}},
		cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
	}
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	w.agent = &agent{configs: w.configs, chooser: w.chooser, cma: cma, home: "home"}
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
		"the rollout holds the add-on": {func(_ *testing.T, w *world) {
			w.chooser.choice.Blocked = "the new one does not exist"
		}, notReady, ready, "waiting for the rollout: the new one does not exist"},
		"nothing can be chosen": {func(_ *testing.T, w *world) {
			w.chooser.err = &addon.NotReadyError{Message: "no placement"}
		}, notReady, notReady, "no placement"},
		"no template chosen": {func(_ *testing.T, w *world) {
			w.chooser.choice.Configs = w.chooser.choice.Configs[:1]
		}, notReady, notReady, "waiting for the rollout to choose an AddOnTemplate"},
		"the template is not there": {func(_ *testing.T, w *world) {
			w.configs.objects = w.configs.objects[1:]
		}, invalid, invalid, "AddOnTemplate tmpl does not exist: create it, or correct the configuration of add-on a"},
		"the template is not there, and the rollout says so": {func(_ *testing.T, w *world) {
			w.configs.objects, w.chooser.choice.Blocked = w.configs.objects[1:], "it does not exist"
		}, notReady, notReady, "waiting for the rollout: it does not exist"},
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
		"a status of the agent's own counts for nothing": {func(t *testing.T, w *world) {
			t.Helper()
			other := templateObject("other", "a", "x")
			require.NoError(t, unstructured.SetNestedSlice(other.Object, []any{map[string]any{"type": "Nonsense"}},
				"spec", "registration"))
			w.configs.objects = append(w.configs.objects, other)
			w.addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
				ConfigGroupResource: confighash.Template(), DesiredConfig: &addonv1beta1.ConfigSpecHash{
					ConfigReferent: addonv1beta1.ConfigReferent{Name: "other"}, SpecHash: hashOf(t, other),
				},
			}}
		}, ready, ready, ""},
		"a template of another add-on that asks for a certificate": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "b", "x"), customSigner("example.com/s"))
		}, invalid, invalid, `AddOnTemplate other, .spec.addonName is "b"`},
		"a template of another add-on that asks for nothing of the hub": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "b", "x"))
		}, ready, ready, ""},
		"a template that asks for a signer of Kubernetes": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "a", "x"), customSigner("kubernetes.io/kube-apiserver-client"))
		}, invalid, invalid, "belongs to Kubernetes"},
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

// use has the rollout choose another template, with further registrations.
func (w *world) use(t *testing.T, u *unstructured.Unstructured, registrations ...any) {
	t.Helper()
	if len(registrations) > 0 {
		require.NoError(t, unstructured.SetNestedSlice(u.Object, registrations, "spec", "registration"))
	}
	w.configs.objects = append(w.configs.objects, u)
	w.chooser.choice.Configs[1] = chosen(confighash.Template(), "", u.GetName(), hashOf(t, u))
}

func customSigner(name string) map[string]any {
	return map[string]any{"type": "CustomSigner", "customSigner": map[string]any{
		"signerName": name, "signingCA": map[string]any{"name": "ca", "namespace": "ns"},
	}}
}

func TestRivalsOfACA(t *testing.T) {
	ca := types.NamespacedName{Namespace: "ns", Name: "ca"}
	read := func(name, addOn string, registrations ...any) *Template {
		u := templateObject(name, addOn, "x")
		require.NoError(t, unstructured.SetNestedSlice(u.Object, registrations, "spec", "registration"))
		read, err := ReadTemplate(u)
		require.NoError(t, err)
		return read
	}
	own := read("own", "a", customSigner("example.com/s"))
	assert.Empty(t, SharedWith([]*Template{own, read("v2", "a", customSigner("example.com/s"))}, ca, "a", "example.com/s", "home"),
		"versions of one template are no rivals")
	assert.Equal(t, []string{"AddOnTemplate evil (signer example.com/s)", "AddOnTemplate v2 (signer example.com/t)"},
		SharedWith([]*Template{
			own, read("v2", "a", customSigner("example.com/t")), read("evil", "b", customSigner("example.com/s")),
		}, ca, "a", "example.com/s", "home"))
}

func TestSharedPermissionsAreThoseOfAllTemplatesThatAreNamed(t *testing.T) {
	w := newWorld(t)
	permission := func(namespace string) any {
		return map[string]any{"type": "KubeClient", "kubeClient": map[string]any{"hubPermissions": []any{
			map[string]any{"type": "SingleNamespace", "singleNamespace": map[string]any{
				"namespace": namespace, "roleRef": map[string]any{"kind": "Role", "name": "reader"},
			}},
			map[string]any{"type": "CurrentCluster", "currentCluster": map[string]any{"clusterRoleName": "cm-admin"}},
		}}}
	}
	for _, name := range []string{"v1", "v2"} {
		u := templateObject(name, "a", "x")
		require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{permission("shared-" + name)}, "spec", "registration"))
		w.configs.objects = append(w.configs.objects, u)
		w.chooser.named = append(w.chooser.named, addonv1beta1.AddOnConfig{
			ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: name},
		})
	}
	shared, err := w.agent.SharedPermissions(t.Context())
	require.NoError(t, err)
	require.Len(t, shared, 2)
	assert.Equal(t, "shared-v1", shared[0].Namespace)
	assert.Equal(t, "shared-v2", shared[1].Namespace)
	w.configs.objects = w.configs.objects[:3]
	_, err = w.agent.SharedPermissions(t.Context())
	require.ErrorContains(t, err, "reading AddOnTemplate v2", "what a missing template asks for is not known")
}

func TestUsesTemplates(t *testing.T) {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	assert.False(t, UsesTemplates(cma))
	cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: confighash.Template()}}
	assert.True(t, UsesTemplates(cma))
}
