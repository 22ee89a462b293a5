package addon_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/library-registrations
func TestRegistrationsAndPermissions(t *testing.T) {
	groups := []string{
		"system:open-cluster-management:cluster:c1:addon:weather", "system:open-cluster-management:addon:weather",
	}
	bound := func(namespace, kind, name, subjectKind, subject string) addon.Permission {
		return addon.Permission{
			Namespace: namespace, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: subjectKind, Name: subject}},
		}
	}
	agent := build(t, addon.Options{
		KubeClient: &addon.KubeClient{Agent: "forecaster", Roles: []addon.HubRole{
			{Name: "reader"}, {Name: "owner", ToUser: true}, {Kind: addon.KindRole, Name: "writer", Namespace: "central"},
			{Name: "here", Namespace: "c1"},
		}},
		CustomSigners: []addon.CustomSigner{
			{SignerName: "example.com/a"},
			{SignerName: "example.com/b", Subject: func(r addon.Request) addonv1beta1.Subject {
				return addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{User: "station-" + r.Cluster.Name}}
			}},
		},
	})
	resolved, err := agent.Resolve(t.Context(), request(t))
	require.NoError(t, err)
	user := groups[0] + ":agent:forecaster"
	require.Len(t, resolved.Registrations, 3)
	standard := addonv1beta1.BaseSubject{User: user, Groups: groups}
	assert.Equal(t, standard, resolved.Registrations[0].KubeClient.Subject.BaseSubject)
	assert.Empty(t, resolved.Registrations[0].KubeClient.Driver, "the agent chooses its driver")
	assert.Equal(t, standard, resolved.Registrations[1].CustomSigner.Subject.BaseSubject)
	assert.Equal(t, "station-c1", resolved.Registrations[2].CustomSigner.Subject.User)
	assert.Equal(t, []addon.Permission{
		bound("c1", "ClusterRole", "reader", "Group", groups[0]), bound("c1", "ClusterRole", "owner", "User", user),
		bound("central", "Role", "writer", "Group", groups[0]), bound("c1", "ClusterRole", "here", "Group", groups[0]),
	}, resolved.Setup.Permissions)

	shared, err := agent.SharedPermissions(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []addon.Permission{
		bound("central", "Role", "writer", "Group", groups[1]), bound("c1", "ClusterRole", "here", "Group", groups[1]),
	}, shared, "bindings outside of the namespaces of clusters are known without a cluster")
}

func TestAnAddOnWithoutRegistrationsDoesNotUseTheHub(t *testing.T) {
	agent := build(t, addon.Options{})
	resolved, err := agent.Resolve(t.Context(), request(t))
	require.NoError(t, err)
	assert.Empty(t, resolved.Registrations)
	assert.Empty(t, resolved.Setup)
	shared, err := agent.SharedPermissions(t.Context())
	require.NoError(t, err)
	assert.Empty(t, shared)
}

// Every error names the add-on, the cluster and the cause, and lists what a person must correct.
//
// Shows: hub/library-errors, hub/library-objects
func TestBadInput(t *testing.T) {
	nameless := deployment("")
	large := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "large"},
		"data": map[string]any{"text": strings.Repeat("x", addon.MaxManifestBytes)},
	}}
	subject := func(user string, groups ...string) addon.Options {
		return addon.Options{KubeClient: &addon.KubeClient{
			Subject: func(addon.Request) addonv1beta1.BaseSubject {
				return addonv1beta1.BaseSubject{User: user, Groups: groups}
			},
			Roles: []addon.HubRole{{Name: "reader"}},
		}}
	}
	annotated := func(key, value string) func(addon.Request) {
		return func(r addon.Request) { r.AddOn.Annotations[key] = value }
	}
	var none *addonv1beta1.ManagedClusterAddOn
	tests := map[string]struct {
		options addon.Options
		change  func(addon.Request)
		says    string
		// later means that nobody needs to correct anything.
		later bool
	}{
		"an object needs a name": {options: addon.Options{Manifests: makes(nameless)},
			says: "object 0 (Deployment weather/): metadata.name is required"},
		"an object needs a kind": {options: addon.Options{Manifests: makes(&unstructured.Unstructured{Object: map[string]any{}})},
			says: "apiVersion is required; object 0 (no kind): kind is required"},
		"two objects cannot be one": {options: addon.Options{Manifests: makes(deployment("a"), deployment("b"), deployment("a"))},
			says: "object 2 (Deployment weather/a): it is the same object as 0"},
		"an object must fit into a work": {options: addon.Options{Manifests: makes(large)},
			says: "object 0 (ConfigMap large): it has 409"},
		"nil is no object":                {options: addon.Options{Manifests: makes(nil)}, says: "object 0: it is nil"},
		"an unknown Go type has no kind":  {options: addon.Options{Manifests: makes(&workv1.ManifestWork{})}, says: "Options.Scheme"},
		"a panic is an error of its line": {options: addon.Options{Manifests: panics(none)}, says: "panicked at addon/author_test.go:"},
		"so is one of a values function": {options: addon.Options{Values: []addon.ValuesFunc{
			func(context.Context, addon.Request) (addon.Values, error) { panic("no weather") },
		}}, says: "no weather"},
		"an error of a values function is told": {options: addon.Options{Values: []addon.ValuesFunc{
			func(context.Context, addon.Request) (addon.Values, error) { return nil, errors.New("no connection") },
		}}, says: "computing Values[0]: no connection", later: true},
		"the annotation with values is a JSON object": {
			options: addon.Options{Values: []addon.ValuesFunc{addon.GetValuesFromAddonAnnotation}},
			change:  annotated(names.AnnotationValues, `["a"]`), says: "ManagedClusterAddOn c1/weather is no JSON object"},
		"an add-on that cannot be hosted names no host": {change: annotated(names.AnnotationHostingCluster, "h"),
			says: "does not support hosted mode: remove annotation"},
		"the user is one of this add-on": {options: subject("system:admin"), says: `user "system:admin", which is no agent`},
		"the groups are those of this add-on": {options: subject(addon.DefaultUser("c1", "weather", "a"), "system:masters"),
			says: `group "system:masters"`},
		"a role is for a group that the agent is in": {options: subject(addon.DefaultUser("c1", "weather", "a")),
			says: "ClusterRole reader is bound to group"},
		"the subject of a signer is none of Kubernetes": {options: addon.Options{CustomSigners: []addon.CustomSigner{{
			SignerName: "example.com/a", Subject: func(addon.Request) addonv1beta1.Subject {
				return addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{Groups: []string{"system:masters"}}}
			},
		}}}, says: "the subject for signer example.com/a"},
		"a namespace is one of Kubernetes": {options: addon.Options{InstallNamespace: func(context.Context, addon.Request) (
			string, error,
		) {
			return "A B", nil
		}}, says: `the install namespace "A B" is not valid`},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent, r := build(t, tc.options), request(t)
			if tc.change != nil {
				tc.change(r)
			}
			_, err := agent.Resolve(t.Context(), r)
			if err == nil {
				_, err = agent.Render(t.Context(), r)
			}
			require.ErrorContains(t, err, "add-on weather on cluster c1: ")
			require.ErrorContains(t, err, tc.says)
			assert.Equal(t, !tc.later, addon.IsInvalid(err))
		})
	}
}

// panics is a builder with an error in the program.
func panics(none *addonv1beta1.ManagedClusterAddOn) addon.ManifestsFunc {
	return func(context.Context, addon.Input) ([]runtime.Object, error) {
		return nil, errors.New(none.Name)
	}
}

// Shows: hub/library-approval
func TestAnAuthorMayRefuseARequest(t *testing.T) {
	check := func(function func(context.Context, addon.Request, *certificatesv1.CertificateSigningRequest) error) error {
		approver, restricts := build(t, addon.Options{CSRApproveCheck: function}).(addon.Approver)
		require.True(t, restricts)
		return approver.CheckRequest(t.Context(), request(t), &certificatesv1.CertificateSigningRequest{})
	}
	require.NoError(t, check(nil))
	err := check(func(context.Context, addon.Request, *certificatesv1.CertificateSigningRequest) error {
		return &addon.InvalidError{Message: "no station here"}
	})
	require.EqualError(t, err, "add-on weather on cluster c1: no station here")
	assert.True(t, addon.IsInvalid(err))
	err = check(func(context.Context, addon.Request, *certificatesv1.CertificateSigningRequest) error {
		panic("no station")
	})
	require.ErrorContains(t, err, "panicked at addon/author_test.go:")
}

// Shows: hub/library-timeout
func TestAFunctionThatBlocksEndsWithItsTime(t *testing.T) {
	blocks := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	tests := map[string]addon.Options{
		"values": {Values: []addon.ValuesFunc{func(ctx context.Context, _ addon.Request) (addon.Values, error) {
			return nil, blocks(ctx)
		}}},
		"objects": {Manifests: addon.ManifestsFunc(func(ctx context.Context, _ addon.Input) ([]runtime.Object, error) {
			return nil, blocks(ctx)
		})},
		"a namespace": {InstallNamespace: func(ctx context.Context, _ addon.Request) (string, error) { return "", blocks(ctx) }},
		"an approval": {CSRApproveCheck: func(
			ctx context.Context, _ addon.Request, _ *certificatesv1.CertificateSigningRequest,
		) error {
			return blocks(ctx)
		}},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, agent := time.Now(), build(t, options)
				_, err := agent.Resolve(t.Context(), request(t))
				if err == nil {
					_, err = agent.Render(t.Context(), request(t))
				}
				if approver, ok := agent.(addon.Approver); err == nil && ok {
					err = approver.CheckRequest(t.Context(), request(t), &certificatesv1.CertificateSigningRequest{})
				}
				require.ErrorContains(t, err, "add-on weather on cluster c1: the functions of the add-on took longer than 10s")
				assert.False(t, addon.IsInvalid(err), "it is tried again")
				assert.Equal(t, 10*time.Second, time.Since(began))
			})
		})
	}
}

func TestAnAuthorMayWait(t *testing.T) {
	agent := build(t, addon.Options{InstallNamespace: func(context.Context, addon.Request) (string, error) {
		return "", &addon.NotReadyError{Message: "waiting for a namespace"}
	}})
	_, err := agent.Resolve(t.Context(), request(t))
	assert.True(t, addon.IsNotReady(err))
}

// Shows: hub/library-objects
func TestObjectsAreDeployedAsTheirAuthorMeantThem(t *testing.T) {
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}},
	}}}
	options := []workv1.ManifestConfigOption{{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps"}}}
	agent := build(t, addon.Options{Manifests: makes(deployment("agent"), list), ManifestConfigs: options})
	rendering, err := agent.Render(t.Context(), request(t, addonv1beta1.AddOnDeploymentConfigSpec{}))
	require.NoError(t, err)
	require.Len(t, rendering.Objects, 3)
	assert.Equal(t, "apps/v1, Kind=Deployment", rendering.Objects[0].GroupVersionKind().String())
	assert.NotContains(t, rendering.Objects[0].Object, "status")
	assert.Equal(t, []string{"a", "b"}, []string{rendering.Objects[1].GetName(), rendering.Objects[2].GetName()})
	assert.Equal(t, options, rendering.ManifestConfigs)
	assert.Len(t, rendering.Configs, 1)
}

// Shows: hub/library-namespace
func TestWhereTheAgentIs(t *testing.T) {
	own := func(context.Context, addon.Request) (string, error) { return "own", nil }
	moved := addonv1beta1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "moved"}
	tests := map[string]struct {
		function  func(context.Context, addon.Request) (string, error)
		configs   []addonv1beta1.AddOnDeploymentConfigSpec
		annotated string
		want      string
	}{
		"by default it is in the namespace for agents": {want: names.NamespaceAgentAddon},
		"the add-on object may name another":           {annotated: "stated", want: "stated"},
		"the author's function counts more":            {function: own, annotated: "stated", want: "own"},
		"the function may be that of a configuration": {function: addon.AgentInstallNamespaceFromDeploymentConfig,
			configs: []addonv1beta1.AddOnDeploymentConfigSpec{{AgentInstallNamespace: "first"}, moved}, want: "moved"},
		"which need not be there": {function: addon.AgentInstallNamespaceFromDeploymentConfig, want: names.NamespaceAgentAddon},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			var got addon.Input
			agent := build(t, addon.Options{InstallNamespace: tc.function, Manifests: addon.ManifestsFunc(
				func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
					got = in
					return nil, nil
				})})
			r := request(t, tc.configs...)
			r.AddOn.Annotations[names.AnnotationInstallNamespace] = tc.annotated
			_, err := agent.Render(t.Context(), r)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got.Namespace)
			assert.Equal(t, addon.InstallModeDefault, got.InstallMode())
		})
	}
}

// Shows: hub/library-order
func TestFunctionsOfValuesAreCalledInOrder(t *testing.T) {
	fixed := func(values addon.Values) addon.ValuesFunc {
		return func(context.Context, addon.Request) (addon.Values, error) { return values, nil }
	}
	var got addon.Input
	agent := build(t, addon.Options{
		Values: []addon.ValuesFunc{
			fixed(addon.Values{"image": "default", "global": map[string]any{"level": "1", "color": "red"}}),
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnCustomizedVariableValues, addon.ToAddOnNodePlacementValues),
			fixed(nil), addon.GetValuesFromAddonAnnotation,
		},
		KubeClient: &addon.KubeClient{},
		Manifests: addon.ManifestsFunc(func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			got = in
			return nil, nil
		}),
	})
	r := request(t, addonv1beta1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "image", Value: "set"}, {Name: "global", Value: "x"}},
		NodePlacement:       &addonv1beta1.NodePlacement{NodeSelector: map[string]string{"disk": "ssd"}},
	})
	r.AddOn.Annotations[names.AnnotationValues] = `{"image": "own", "global": {"color": "blue"}}`
	_, err := agent.Render(t.Context(), r)
	require.NoError(t, err)
	assert.True(t, got.Registers)
	assert.Equal(t, addon.Values{
		"image": "own", "tolerations": nil,
		"global": map[string]any{"level": "1", "color": "blue", "nodeSelector": map[string]any{"disk": "ssd"}},
	}, got.Values, "the conversions of one function are merged before they meet others")
}

// Shows: hub/library-scheme
func TestAnAuthorMayHaveTypesOfItsOwn(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	own := &workv1.ManifestWork{}
	own.Name, own.Namespace = "a", "weather"
	rendering, err := build(t, addon.Options{Scheme: scheme, Manifests: makes(own)}).Render(t.Context(), request(t))
	require.NoError(t, err)
	assert.Equal(t, "work.open-cluster-management.io/v1, Kind=ManifestWork",
		rendering.Objects[0].GroupVersionKind().String())

	own.APIVersion, own.Kind = "example.com/v1", "Station"
	rendering, err = build(t, addon.Options{Manifests: makes(own)}).Render(t.Context(), request(t))
	require.NoError(t, err)
	assert.Equal(t, "Station", rendering.Objects[0].GetKind(), "an object that states its kind needs no scheme")
}

// A Namespace is needed on both sides when the agent on one works in the same namespace of the other.
//
// Shows: hub/library-hosted
func TestAnObjectMayBeOnBothSidesOfAHostedAddOn(t *testing.T) {
	namespace := func(side string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "weather"},
		}}
		if side != "" {
			u.SetAnnotations(map[string]string{names.AnnotationHostedLocation: side})
		}
		return u
	}
	const twice = "it is the same object as 0"
	for sentence, tc := range map[string]struct {
		first, second, host, says string
	}{
		"one on each side is none twice":          {"", "hosting", "h", ""},
		"managed is the side of one without":      {"", "managed", "h", twice},
		"two on one side are one twice":           {"hosting", "hosting", "h", twice},
		"one that is nowhere is no other":         {"none", "hosting", "h", ""},
		"without a host, all are on one cluster":  {"", "hosting", "", twice},
		"whatever their sides would be otherwise": {"none", "hosting", "", twice},
	} {
		t.Run(sentence, func(t *testing.T) {
			agent := build(t, addon.Options{HostedMode: true, Manifests: makes(namespace(tc.first), namespace(tc.second))})
			r := request(t)
			r.AddOn.Annotations[names.AnnotationHostingCluster] = tc.host
			rendering, err := agent.Render(t.Context(), r)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				return
			}
			require.NoError(t, err)
			assert.Len(t, rendering.Objects, 2)
		})
	}
}

// Shows: hub/library-hosted
func TestAHostedAgentKnowsItsMode(t *testing.T) {
	var mode string
	agent := build(t, addon.Options{HostedMode: true, Manifests: addon.ManifestsFunc(
		func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			mode = in.InstallMode()
			return nil, nil
		})})
	r := request(t)
	r.AddOn.Annotations[names.AnnotationHostingCluster] = "h"
	_, err := agent.Render(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, addon.InstallModeHosted, mode)
}

// Shows: hub/library-definitions
func TestDescriptionsOfDefinitionsAreTrimmed(t *testing.T) {
	text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"stations.example.com"},
		"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"description":"d","type":"object","properties":{
			"description":{"type":"string","description":"d"},
			"list":{"type":"array","items":{"description":"d","anyOf":[{"description":"d"}],"not":{"description":"d"}}},
			"map":{"additionalProperties":{"description":"d"},"externalDocs":{"description":"d","url":"u"}}},
			"patternProperties":{"^a":{"description":"d","allOf":[{"description":"d"}],"oneOf":[{"description":"d"}]}},
			"definitions":{"a":{"description":"d"}}}}}]}}`
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, json.Unmarshal([]byte(text), &definition))
	agent := build(t, addon.Options{TrimCRDDescription: true, Manifests: makes(&definition, deployment("a"))})
	rendering, err := agent.Render(t.Context(), request(t))
	require.NoError(t, err)
	raw, err := json.Marshal(rendering.Objects[0].Object)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), `"d"`)
	assert.Contains(t, string(raw), `"externalDocs":{"url":"u"}`)
	assert.Contains(t, string(raw), `"description":{"type":"string"}`, "a field of this name stays")
}
