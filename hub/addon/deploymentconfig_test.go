package addon_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

func full() addonv1beta1.AddOnDeploymentConfigSpec {
	return addonv1beta1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "LogLevel", Value: "4"}, {Name: "a.b", Value: "c"}},
		NodePlacement: &addonv1beta1.NodePlacement{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
		},
		ProxyConfig: addonv1beta1.ProxyConfig{
			HTTPProxy: "http://p:1", HTTPSProxy: "https://p:2", NoProxy: "example.com", CABundle: []byte("bundle"),
		},
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{{
			ContainerID: "*:my.agent:main",
			Resources:   corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")}},
		}},
		Registries: []addonv1beta1.ImageMirror{{Source: "quay.io/weather", Mirror: "m.example.com/w"}},
	}
}

// The names and shapes are part of the contract with charts and templates of today.
//
// Shows: hub/library-config-values
func TestValuesFromADeploymentConfig(t *testing.T) {
	const pattern = `^.+:my\.agent:main$`
	tests := map[string]struct {
		spec    addonv1beta1.AddOnDeploymentConfigSpec
		convert addon.AddOnDeploymentConfigToValuesFunc
		want    addon.Values
	}{
		"variables are flat and text": {full(), addon.ToAddOnCustomizedVariableValues,
			addon.Values{"LogLevel": "4", "a.b": "c"}},
		"the node placement of charts": {full(), addon.ToAddOnNodePlacementValues, addon.Values{
			"global":      map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}},
			"tolerations": []any{map[string]any{"key": "k", "operator": "Exists"}},
		}},
		"the proxy of charts": {full(), addon.ToAddOnProxyConfigValues, addon.Values{"global": map[string]any{
			"proxyConfig": map[string]any{
				"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "https://p:2", "NO_PROXY": "example.com", "PROXY_CA_BUNDLE": "bundle",
			},
		}}},
		"the resources of charts": {full(), addon.ToAddOnResourceRequirementsValues, addon.Values{"global": map[string]any{
			"resourceRequirements": []any{map[string]any{
				"containerIDRegex": pattern, "resources": map[string]any{"limits": map[string]any{"memory": "64Mi"}},
				"resourcesRaw": map[string]any{"limits": map[string]any{"memory": "64Mi"}},
			}},
		}}},
		"an image of charts": {full(), addon.ToImageOverrideValuesFunc("global.images.agent", "quay.io/weather/agent:v1"),
			addon.Values{"global": map[string]any{"images": map[string]any{"agent": "m.example.com/w/agent:v1"}}}},
		"all of Go templates": {full(), addon.ToAddOnDeploymentConfigValues, addon.Values{
			"LogLevel": "4", "a.b": "c", "NodeSelector": map[string]string{"disk": "ssd"},
			"Tolerations": []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
			"HTTPProxy":   "http://p:1", "HTTPSProxy": "https://p:2", "NoProxy": "example.com", "ProxyCABundle": "bundle",
			"ResourceRequirements": []addon.RegexResourceRequirements{{
				ContainerIDRegex: pattern,
				Resources:        addon.ResourceTexts{Limits: map[string]string{"memory": "64Mi"}},
				ResourcesRaw: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
				},
			}},
		}},
		"no placement is no value":   {addonv1beta1.AddOnDeploymentConfigSpec{}, addon.ToAddOnNodePlacementValues, addon.Values{}},
		"no resources are no values": {addonv1beta1.AddOnDeploymentConfigSpec{}, addon.ToAddOnResourceRequirementsValues, addon.Values{}},
		"an empty one is empty":      {addonv1beta1.AddOnDeploymentConfigSpec{}, addon.ToAddOnDeploymentConfigValues, addon.Values{}},
		"a setting of the proxy that is not there stays that of the chart": {addonv1beta1.AddOnDeploymentConfigSpec{
			ProxyConfig: addonv1beta1.ProxyConfig{HTTPSProxy: "https://p:2"},
		}, addon.ToAddOnProxyConfigValues, addon.Values{"global": map[string]any{
			"proxyConfig": map[string]any{"HTTPS_PROXY": "https://p:2"},
		}}},
		"only noProxy is no proxy": {addonv1beta1.AddOnDeploymentConfigSpec{ProxyConfig: addonv1beta1.ProxyConfig{NoProxy: "a"}},
			addon.ToAddOnProxyConfigValues, addon.Values{}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, err := addon.GetAddOnDeploymentConfigValues(tc.convert)(t.Context(), request(t, tc.spec))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAnEmptyListOfResourcesReplacesThatOfAChart(t *testing.T) {
	var config addonv1beta1.AddOnDeploymentConfig
	config.Spec.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{}
	got, err := addon.ToAddOnResourceRequirementsValues(config)
	require.NoError(t, err)
	assert.Equal(t, addon.Values{"global": map[string]any{"resourceRequirements": []any{}}}, got)
}

// Shows: hub/library-config-values
func TestIDsOfContainersAreExpressions(t *testing.T) {
	tests := map[string]struct{ id, want, says string }{
		"a container has an id":             {"deployments:agent:main", `^deployments:agent:main$`, ""},
		"a star stands for any resource":    {"*:agent:main", `^.+:agent:main$`, ""},
		"and for any object":                {"*:*:main", `^.+:.+:main$`, ""},
		"and for any container":             {"*:*:*", `^.+:.+:.+$`, ""},
		"and for a part of a name":          {"pods:agent-*:main", `^pods:agent-.+:main$`, ""},
		"a dot is a dot":                    {"pods:my.agent:main", `^pods:my\.agent:main$`, ""},
		"fewer than three parts are no id":  {"agent:main", "", `the containerID "agent:main" of resourceRequirements`},
		"nor are more than three parts one": {"pods:a:b:c", "", "resource, object and container"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			spec := addonv1beta1.AddOnDeploymentConfigSpec{
				ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{{ContainerID: tc.id}},
			}
			for _, convert := range []addon.AddOnDeploymentConfigToValuesFunc{
				addon.ToAddOnResourceRequirementsValues, addon.ToAddOnDeploymentConfigValues,
			} {
				_, err := addon.GetAddOnDeploymentConfigValues(convert)(t.Context(), request(t, spec))
				if tc.says != "" {
					require.ErrorContains(t, err, tc.says)
					require.ErrorContains(t, err, "AddOnDeploymentConfig c1/config")
					assert.True(t, addon.IsInvalid(err))
					continue
				}
				require.NoError(t, err)
			}
			if tc.says == "" {
				got, err := addon.GetRegexResourceRequirements(spec.ResourceRequirements)
				require.NoError(t, err)
				assert.Equal(t, tc.want, got[0].ContainerIDRegex)
			}
		})
	}
}

// variable returns a configuration with one variable, which also says where everything else is.
func variable(name, value string) addonv1beta1.AddOnDeploymentConfigSpec {
	return addonv1beta1.AddOnDeploymentConfigSpec{
		CustomizedVariables:   []addonv1beta1.CustomizedVariable{{Name: name, Value: value}},
		AgentInstallNamespace: "ns" + value,
		Registries:            []addonv1beta1.ImageMirror{{Source: "quay.io", Mirror: "m" + value}},
	}
}

// Shows: hub/config-precedence
func TestOneOfSeveralDeploymentConfigsCounts(t *testing.T) {
	ctx := t.Context()
	r := request(t, variable("A", "1"), variable("B", "2"), variable("A", "3"))
	keys := map[string]bool{}
	for precedence, want := range map[addon.Precedence]string{"": "3", addon.LastCounts: "3", addon.FirstCounts: "1"} {
		t.Run("precedence "+string(precedence), func(t *testing.T) {
			r := r
			r.Choice.Precedence = precedence
			got, err := addon.GetAddOnDeploymentConfigValues(addon.ToAddOnCustomizedVariableValues)(ctx, r)
			require.NoError(t, err)
			assert.Equal(t, addon.Values{"A": want}, got, "they are not merged")
			namespace, err := addon.AgentInstallNamespaceFromDeploymentConfig(ctx, r)
			require.NoError(t, err)
			assert.Equal(t, "ns"+want, namespace)
			image, err := addon.GetAgentImageValues("image", "quay.io/a:v1")(ctx, r)
			require.NoError(t, err)
			assert.Equal(t, addon.Values{"image": "m" + want + "/a:v1"}, image)
			config, err := addon.GetAddOnDeploymentConfig(r)
			require.NoError(t, err)
			assert.Equal(t, want, config.Spec.CustomizedVariables[0].Value)
			all, err := addon.GetAddOnDeploymentConfigs(r)
			require.NoError(t, err)
			assert.Len(t, all, 3, "an add-on that merges them has all of them")
			resolved, err := build(t, addon.Options{Version: "1"}).Resolve(ctx, r)
			require.NoError(t, err)
			keys[resolved.Key] = true
		})
	}
	assert.Len(t, keys, 3, "another one that counts is another rendering")

	none, err := addon.GetAddOnDeploymentConfig(request(t))
	require.NoError(t, err)
	assert.Nil(t, none)
	one := request(t, variable("A", "1"))
	one.Choice.Precedence = addon.FirstCounts
	first, err := build(t, addon.Options{Version: "1"}).Resolve(ctx, one)
	require.NoError(t, err)
	one.Choice.Precedence = addon.LastCounts
	last, err := build(t, addon.Options{Version: "1"}).Resolve(ctx, one)
	require.NoError(t, err)
	assert.Equal(t, first.Key, last.Key, "of one, nothing is rendered again")
}

// Shows: hub/library-config-values
func TestDeploymentConfigsThatCannotBeUsed(t *testing.T) {
	values := addon.GetAddOnDeploymentConfigValues(addon.ToAddOnCustomizedVariableValues)
	unread := request(t, variable("A", "1"))
	unread.Choice.Configs[0].Object = nil
	_, err := values(t.Context(), unread)
	assert.True(t, addon.IsNotReady(err))

	wrong := request(t, variable("A", "1"))
	wrong.Choice.Configs[0].Object.Object["spec"] = "text"
	_, err = values(t.Context(), wrong)
	require.ErrorContains(t, err, "AddOnDeploymentConfig c1/config cannot be read")
	assert.True(t, addon.IsInvalid(err))

	failing := addon.GetAddOnDeploymentConfigValues(func(addonv1beta1.AddOnDeploymentConfig) (addon.Values, error) {
		return nil, errors.New("no such station")
	})
	_, err = failing(t.Context(), request(t, variable("A", "1")))
	require.EqualError(t, err, "converting AddOnDeploymentConfig c1/config: no such station")
}

// Shows: hub/library-images
func TestGetAgentImageValues(t *testing.T) {
	const image = "quay.io/weather/agent:v1"
	annotation := `{"registries":[{"source":"quay.io","mirror":"cluster.example.com"}]}`
	elsewhere := addonv1beta1.AddOnDeploymentConfigSpec{
		Registries: []addonv1beta1.ImageMirror{{Source: "docker.io", Mirror: "m"}},
	}
	tests := map[string]struct {
		configs         []addonv1beta1.AddOnDeploymentConfigSpec
		annotation, key string
		want            addon.Values
		says            string
	}{
		"without mirrors an image stays": {key: "image", want: addon.Values{"image": image}},
		"a cluster has mirrors": {annotation: annotation, key: "image",
			want: addon.Values{"image": "cluster.example.com/weather/agent:v1"}},
		"a configuration counts more": {configs: []addonv1beta1.AddOnDeploymentConfigSpec{full()}, annotation: annotation,
			key: "image", want: addon.Values{"image": "m.example.com/w/agent:v1"}},
		"unless it has no mirror for the image": {configs: []addonv1beta1.AddOnDeploymentConfigSpec{elsewhere},
			annotation: annotation, key: "image", want: addon.Values{"image": "cluster.example.com/weather/agent:v1"}},
		"dots are levels":         {key: "a.b", want: addon.Values{"a": map[string]any{"b": image}}},
		"a key is required":       {key: "", says: "key and image are required"},
		"so is each of its parts": {key: "a..b", says: "key and image are required"},
		"a wrong annotation is told": {annotation: `{"registries":`, key: "image",
			says: "annotation " + names.AnnotationImageRegistries + " of ManagedCluster c1"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := request(t, tc.configs...)
			r.Cluster.Annotations = map[string]string{names.AnnotationImageRegistries: tc.annotation}
			got, err := addon.GetAgentImageValues(tc.key, image)(t.Context(), r)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.True(t, addon.IsInvalid(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// Shows: hub/library-images
func TestOverrideImage(t *testing.T) {
	mirror := func(source, mirror string) []addonv1beta1.ImageMirror {
		return []addonv1beta1.ImageMirror{{Source: source, Mirror: mirror}}
	}
	tests := map[string]struct {
		mirrors []addonv1beta1.ImageMirror
		want    string
	}{
		"without mirrors an image stays":                {nil, "quay.io/a/b:v1"},
		"a source is a beginning":                       {mirror("quay.io/a", "m"), "m/b:v1"},
		"of any length":                                 {mirror("quay.io/a/b:", "m/c:"), "m/c:v1"},
		"another source is none":                        {mirror("quay.io/c", "m"), "quay.io/a/b:v1"},
		"no source is that of all images":               {mirror("", "m/"), "m/b:v1"},
		"a slash at an end means nothing":               {mirror("quay.io/a/", "m/"), "m/b:v1"},
		"a mirror without a place leaves the last part": {mirror("", ""), "b:v1"},
		"an image is no mirror of itself": {append(mirror("quay.io", "m"), mirror("quay.io/a", "quay.io/a")...),
			"m/a/b:v1"},
		"the last mirror counts": {append(mirror("quay.io", "m"), mirror("quay.io/a", "n")...),
			"n/b:v1"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, addon.OverrideImage(tc.mirrors, "quay.io/a/b:v1")) })
	}
}
