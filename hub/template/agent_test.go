package template

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/spokelet/spokelet/internal/names"
)

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

// chosen returns the choice of an object with its content.
func chosen(t *testing.T, u *unstructured.Unstructured) addon.ChosenConfig {
	t.Helper()
	resource := confighash.Template()
	if u.GetNamespace() != "" {
		resource = confighash.DeploymentConfig()
	}
	return addon.ChosenConfig{
		ConfigGroupResource: resource, Object: u,
		ConfigSpecHash: addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: u.GetNamespace(), Name: u.GetName()}, SpecHash: hashOf(t, u),
		},
	}
}

// configurer names a few configurations.
type configurer struct {
	addon.Configurer
	named []addon.ChosenConfig
	err   error
}

func (c *configurer) Named(context.Context, string, addonv1beta1.ConfigGroupResource) ([]addon.ChosenConfig, error) {
	return c.named, c.err
}

// present are the templates of a hub, as they are now.
type present struct {
	client.Reader
	templates map[string]*unstructured.Unstructured
}

func (p present) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, isObject := into.(*unstructured.Unstructured)
	if found := p.templates[key.Name]; isObject && found != nil {
		found.DeepCopyInto(object)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "addontemplates"}, key.Name)
}

// world is a hub with one template add-on, all in order.
type world struct {
	agent      *agent
	present    present
	configurer *configurer
	request    addon.Request
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{configurer: &configurer{}, request: addon.Request{
		AddOn:   &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}},
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		Choice: addon.Choice{Configs: []addon.ChosenConfig{
			chosen(t, configObject("cfg", "config", "value")), chosen(t, templateObject("tmpl", "a", "{{V}}")),
		}},
	}}
	w.present = present{templates: map[string]*unstructured.Unstructured{}}
	w.agent = &agent{registry: &Registry{Configs: w.present, Configurer: w.configurer, Home: "home"}, name: "a"}
	return w
}

func TestAgentAnswers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	rendering, err := w.agent.Render(ctx, w.request)
	require.NoError(t, err)
	require.Len(t, rendering.Objects, 1)
	assert.Equal(t, map[string]any{"k": "value"}, rendering.Objects[0].Object["data"])
	resolved, err := w.agent.Resolve(ctx, w.request)
	require.NoError(t, err)
	assert.Equal(t, addon.Setup{
		Namespace: "open-cluster-management-agent-addon", Health: addon.HealthWorkloads,
	}, resolved.Setup)
	assert.Len(t, resolved.Registrations, 1)
	_, found, err := w.agent.SigningCA(ctx, w.request, "s.io/s")
	require.NoError(t, err)
	assert.False(t, found)
	assert.Equal(t, "a", w.agent.About().Name)
}

// Shows: hub/another-probe-is-told
func TestAnEditOfTheAnnotationAloneSaysThatItDoesNotCountYet(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(*unstructured.Unstructured)
		next addon.HealthProbe
	}{
		"nothing was edited":   {func(*unstructured.Unstructured) {}, ""},
		"the annotation alone": {func(u *unstructured.Unstructured) { annotate(u, "Lease") }, addon.HealthLease},
		"the value is unknown": {func(u *unstructured.Unstructured) { annotate(u, "lease") }, ""},
		"a rollout brings it": {func(u *unstructured.Unstructured) {
			annotate(u, "Lease")
			u.Object["spec"] = templateObject("tmpl", "a", "another").Object["spec"]
		}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t)
			w.present.templates["tmpl"] = templateObject("tmpl", "a", "{{V}}")
			tc.edit(w.present.templates["tmpl"])
			resolved, err := w.agent.Resolve(t.Context(), w.request)
			require.NoError(t, err)
			assert.Equal(t, tc.next, resolved.NextHealth)
			assert.Equal(t, addon.HealthWorkloads, resolved.Setup.Health, "it does not count yet")
		})
	}
	w := newWorld(t)
	annotate(w.request.Choice.Configs[1].Object, "Lease")
	w.present.templates["tmpl"] = templateObject("tmpl", "a", "{{V}}")
	resolved, err := w.agent.Resolve(t.Context(), w.request)
	require.NoError(t, err)
	assert.Equal(t, addon.HealthWorkloads, resolved.NextHealth, "its removal")
}

func annotate(u *unstructured.Unstructured, probe string) {
	u.SetAnnotations(map[string]string{names.AnnotationHealthProbe: probe})
}

func TestTheKeyOfARenderingIsThatOfItsInputs(t *testing.T) {
	key := func(change func(w *world)) string {
		w := newWorld(t)
		change(w)
		resolved, err := w.agent.Resolve(t.Context(), w.request)
		require.NoError(t, err)
		return resolved.Key
	}
	same := key(func(*world) {})
	assert.Equal(t, same, key(func(w *world) { w.request.AddOn.Status.Namespace = "other" }))
	assert.Equal(t, same, key(func(w *world) { w.request.Cluster.Labels = map[string]string{"a": "b"} }))
	for name, change := range map[string]func(w *world){
		"another cluster": func(w *world) { w.request.Cluster.Name = "c2" },
		"other mirrors": func(w *world) {
			w.request.Cluster.Annotations = map[string]string{names.AnnotationImageRegistries: "{}"}
		},
		"another content": func(w *world) { w.request.Choice.Configs[0].SpecHash = "other" },
	} {
		assert.NotEqual(t, same, key(change), name)
	}
}

func TestAgentWaitsOrRefuses(t *testing.T) {
	const (
		ready = iota
		notReady
		invalid
	)
	tests := map[string]struct {
		change func(t *testing.T, w *world)
		class  int
		says   string
	}{
		"all in order": {func(*testing.T, *world) {}, ready, ""},
		"no template is chosen yet": {func(_ *testing.T, w *world) {
			w.request.Choice.Desired = []addonv1beta1.AddOnConfig{{ConfigGroupResource: confighash.Template()}}
			w.request.Choice.Configs = w.request.Choice.Configs[:1]
		}, notReady, "waiting for the rollout to choose an AddOnTemplate"},
		"no spec names a template": {func(_ *testing.T, w *world) {
			w.request.Choice.Configs = w.request.Choice.Configs[:1]
		}, notReady, "no spec of add-on a names an AddOnTemplate for cluster c1: name one"},
		"a template of another add-on that asks for a certificate is deployed without it": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "b", "x"), customSigner("example.com/s"))
		}, ready, ""},
		"a template of another add-on that asks for a signer of Kubernetes": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "b", "x"), customSigner("kubernetes.io/kube-apiserver-client"))
		}, invalid, "belongs to Kubernetes"},
		"a template of another add-on that asks for nothing of the hub": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "b", "x"))
		}, ready, ""},
		"a template that asks for a signer of Kubernetes": {func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, templateObject("other", "a", "x"), customSigner("kubernetes.io/kube-apiserver-client"))
		}, invalid, "belongs to Kubernetes"},
	}
	class := func(err error) int {
		switch {
		case err == nil:
			return ready
		case addon.IsNotReady(err):
			return notReady
		}
		assert.True(t, addon.IsInvalid(err), "%v", err)
		return invalid
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.change(t, w)
			_, err := w.agent.Render(t.Context(), w.request)
			assert.Equal(t, test.class, class(err), "%v", err)
			if err != nil {
				assert.Contains(t, err.Error(), test.says)
			}
			_, err = w.agent.Resolve(t.Context(), w.request)
			assert.Equal(t, test.class, class(err), "%v", err)
		})
	}
}

// Shows: hub/template-of-another
func TestATemplateOfAnotherAddOnIsDeployedWithoutWhatNeedsTrust(t *testing.T) {
	w := newWorld(t)
	other := templateObject("other", "b", "{{HUB_KUBECONFIG}}")
	w.use(t, other, customSigner("example.com/s"), map[string]any{"type": "KubeClient", "kubeClient": map[string]any{
		"hubPermissions": []any{
			map[string]any{"type": "CurrentCluster", "currentCluster": map[string]any{"clusterRoleName": "cm-admin"}},
		},
	}})
	rendering, err := w.agent.Render(t.Context(), w.request)
	require.NoError(t, err)
	assert.Len(t, rendering.Objects, 1)
	resolved, err := w.agent.Resolve(t.Context(), w.request)
	require.NoError(t, err)
	assert.Empty(t, resolved.Setup.Permissions)
	require.Len(t, resolved.Registrations, 1)
	require.NotNil(t, resolved.Registrations[0].KubeClient)
	assert.Equal(t, "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent",
		resolved.Registrations[0].KubeClient.Subject.User, "its own identity")
	assert.True(t, addon.IsInvalid(resolved.Withheld))
	require.EqualError(t, resolved.Withheld, `AddOnTemplate other, .spec.addonName is "b", so its hub permissions and its `+
		`certificates of custom signers are for that add-on and not for a, which is deployed without them: create an `+
		`AddOnTemplate of its own for a`)
	_, signs, err := w.agent.SigningCA(t.Context(), w.request, "example.com/s")
	require.NoError(t, err)
	assert.False(t, signs)
	w.configurer.named = append(w.configurer.named, chosen(t, other))
	_, err = w.agent.SharedPermissions(t.Context())
	require.ErrorContains(t, err, "spec.addonName", "bindings that are there stay")

	w.use(t, templateObject("own", "a", "x"), customSigner("example.com/s"))
	resolved, err = w.agent.Resolve(t.Context(), w.request)
	require.NoError(t, err)
	require.NoError(t, resolved.Withheld)
	assert.Len(t, resolved.Registrations, 1)
}

// use has the rollout choose another template, with further registrations.
func (w *world) use(t *testing.T, u *unstructured.Unstructured, registrations ...any) {
	t.Helper()
	if len(registrations) > 0 {
		require.NoError(t, unstructured.SetNestedSlice(u.Object, registrations, "spec", "registration"))
	}
	w.request.Choice.Configs[1] = chosen(t, u)
}

func customSigner(name string) map[string]any {
	return map[string]any{"type": "CustomSigner", "customSigner": map[string]any{
		"signerName": name, "signingCA": map[string]any{"name": "ca", "namespace": "ns"},
	}}
}

func TestRivalsOfACA(t *testing.T) {
	ca := types.NamespacedName{Namespace: "ns", Name: "ca"}
	r := &Registry{}
	read := func(name, addOn string, registrations ...any) *Template {
		u := templateObject(name, addOn, "x")
		u.SetResourceVersion("1")
		u.SetUID(types.UID(name + addOn + fmt.Sprint(registrations...)))
		require.NoError(t, unstructured.SetNestedSlice(u.Object, registrations, "spec", "registration"))
		packed, err := confighash.Pack(u)
		require.NoError(t, err)
		cached, is := packed.(*unstructured.Unstructured)
		require.True(t, is)
		known := r.signers(cached)
		require.NotNil(t, known)
		require.Same(t, known, r.signers(cached), "it is read once")
		require.Equal(t, r.signers(u.DeepCopy()), known)
		u.SetResourceVersion("") // one of a file
		require.NotSame(t, known, r.signers(u))
		require.Equal(t, known, r.signers(u))
		return known
	}
	a := &agent{name: "a", registry: &Registry{Home: "home"}}
	own := read("own", "a", customSigner("example.com/s"))
	assert.Empty(t, a.sharedWith([]*Template{own, read("v2", "a", customSigner("example.com/s"))}, ca, "example.com/s"),
		"versions of one template are no rivals")
	assert.Equal(t, []string{"AddOnTemplate evil (signer example.com/s)", "AddOnTemplate v2 (signer example.com/t)"},
		a.sharedWith([]*Template{
			own, read("v2", "a", customSigner("example.com/t")), read("evil", "b", customSigner("example.com/s")),
		}, ca, "example.com/s"))
}

// TestARivalWhoseManifestsAreInvalidIsSeen: its CA is what it names, whatever else it has.
func TestARivalWhoseManifestsAreInvalidIsSeen(t *testing.T) {
	u := templateObject("large", "b", "x")
	require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{customSigner("example.com/s")}, "spec", "registration"))
	require.NoError(t, unstructured.SetNestedField(u.Object, []any{"x"}, "spec", "agentSpec", "workload", "manifests"))
	_, err := ReadTemplate(u)
	require.ErrorContains(t, err, "manifest 0 is no object")
	a := &agent{name: "a", registry: &Registry{Home: "home"}}
	known := a.registry.signers(u)
	require.NotNil(t, known)
	assert.Equal(t, []string{"AddOnTemplate large (signer example.com/s)"},
		a.sharedWith([]*Template{known}, types.NamespacedName{Namespace: "ns", Name: "ca"}, "example.com/s"))
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
		w.configurer.named = append(w.configurer.named, chosen(t, u))
	}
	shared, err := w.agent.SharedPermissions(t.Context())
	require.NoError(t, err)
	require.Len(t, shared, 2)
	assert.Equal(t, "shared-v1", shared[0].Namespace)
	assert.Equal(t, "shared-v2", shared[1].Namespace)
	w.configurer.err = errors.New("addontemplates \"v2\" does not exist")
	_, err = w.agent.SharedPermissions(t.Context())
	require.ErrorContains(t, err, "does not exist", "what a missing template asks for is not known")
}

func TestUsesTemplates(t *testing.T) {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	assert.False(t, UsesTemplates(cma))
	cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: confighash.Template()}}
	assert.True(t, UsesTemplates(cma))
}
