package addon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
)

// Shows: hub/library-options
func TestWrongOptionsAreRefusedWhenTheAddOnIsBuilt(t *testing.T) {
	config := addon.AddOnDeploymentConfigGVR()
	older := config
	older.Version = "v1alpha1"
	tests := map[string]struct {
		change func(o *addon.Options)
		says   string
	}{
		"an add-on needs a name":              {func(o *addon.Options) { o.Name = "" }, `add-on "" cannot be built: Name`},
		"the name is one of Kubernetes":       {func(o *addon.Options) { o.Name = "Weather" }, "lower case"},
		"an add-on needs manifests":           {func(o *addon.Options) { o.Manifests = nil }, "Manifests: it is required"},
		"a values function must not be nil":   {func(o *addon.Options) { o.Values = []addon.ValuesFunc{nil} }, "Values[0]"},
		"a kind of config needs a version":    {kinds(schema.GroupVersionResource{Resource: "a"}), "version and resource"},
		"a kind of config needs a resource":   {kinds(schema.GroupVersionResource{Version: "v1"}), "version and resource"},
		"a kind of config stands there once":  {kinds(config, config), "ConfigGVRs[1]: addondeploymentconfigs"},
		"two versions of a kind are one kind": {kinds(config, older), "twice"},
		"a role needs a name":                 {roles(addon.HubRole{}), "KubeClient.Roles[0]: its Name is required"},
		"a role has one of two kinds":         {roles(addon.HubRole{Name: "a", Kind: "X"}), `kind "X" is unknown`},
		"a user differs between clusters": {roles(addon.HubRole{Name: "a", Namespace: "n", ToUser: true}),
			"only in the namespaces of clusters"},
		"nothing is bound in a namespace of Kubernetes": {roles(addon.HubRole{Name: "a", Namespace: "kube-system"}),
			"belongs to Kubernetes"},
		"a signer of Kubernetes is no custom signer": {signers("kubernetes.io/kube-apiserver-client"), "belongs to Kubernetes"},
		"a signer stands there once":                 {signers("example.com/a", "example.com/a"), "twice"},
		"a lifetime is positive": {func(o *addon.Options) {
			o.CustomSigners = []addon.CustomSigner{{SignerName: "example.com/a", Lifetime: -time.Hour}}
		}, "Lifetime"},
		"a time limit is positive":  {func(o *addon.Options) { o.Timeout = -time.Second }, "Timeout"},
		"a prober has a known type": {func(o *addon.Options) { o.HealthProber.Type = "Guess" }, `"Guess" is unknown`},
		"fields count with works only": {func(o *addon.Options) {
			o.HealthProber = addon.HealthProber{Type: addon.HealthLease, Work: &addon.WorkProbe{}}
		}, "only with type Work"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			options := addon.Options{Name: "weather", Manifests: makes()}
			tc.change(&options)
			_, err := addon.New(options)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func kinds(all ...schema.GroupVersionResource) func(*addon.Options) {
	return func(o *addon.Options) { o.ConfigGVRs = all }
}

func roles(all ...addon.HubRole) func(*addon.Options) {
	return func(o *addon.Options) { o.KubeClient = &addon.KubeClient{Roles: all} }
}

func signers(all ...string) func(*addon.Options) {
	return func(o *addon.Options) {
		for _, name := range all {
			o.CustomSigners = append(o.CustomSigners, addon.CustomSigner{SignerName: name})
		}
	}
}

// Shows: hub/library-options
func TestAllProblemsOfOptionsAreTold(t *testing.T) {
	_, err := addon.New(addon.Options{})
	require.ErrorContains(t, err, "Name")
	require.ErrorContains(t, err, "Manifests")
}

func TestWhatAnAddOnUnderstands(t *testing.T) {
	about := build(t, addon.Options{ConfigGVRs: []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, addon.AddOnDeploymentConfigGVR(),
	}}).About()
	assert.Equal(t, addon.About{Name: "weather", SupportedConfigs: []addonv1beta1.ConfigGroupResource{
		{Resource: "configmaps"}, {Group: addonv1beta1.GroupName, Resource: "addondeploymentconfigs"},
	}}, about)
}

// Shows: hub/library-signing
func TestSigningCA(t *testing.T) {
	ca := types.NamespacedName{Namespace: "weather", Name: "ca"}
	agent := build(t, addon.Options{CustomSigners: []addon.CustomSigner{
		{SignerName: "example.com/a", CA: ca, Lifetime: time.Hour}, {SignerName: "example.com/b", CA: ca},
		{SignerName: "example.com/c"},
	}})
	tests := map[string]struct {
		signer string
		want   addon.SigningCA
		found  bool
	}{
		"the CA of a signer is named, with whom else it serves": {"example.com/a",
			addon.SigningCA{Secret: ca, SharedWith: []string{"signer example.com/b"}, Lifetime: time.Hour}, true},
		"a signer without a CA is that of somebody else": {"example.com/c", addon.SigningCA{}, false},
		"so is one that the author does not name":        {"example.com/d", addon.SigningCA{}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, found, err := agent.SigningCA(t.Context(), request(t), tc.signer)
			require.NoError(t, err)
			assert.Equal(t, tc.found, found)
			assert.Equal(t, tc.want, got)
		})
	}
}
