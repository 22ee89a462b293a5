package template_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/template"
)

// everything is a configuration that sets all that decorates a pod.
func everything(s *addonv1beta1.AddOnDeploymentConfigSpec) {
	s.NodePlacement = &addonv1beta1.NodePlacement{
		NodeSelector: map[string]string{"disk": "ssd"},
		Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
	}
	s.Registries = []addonv1beta1.ImageMirror{{Source: "quay.io/ocm", Mirror: "m.example.com"}}
	s.ProxyConfig = addonv1beta1.ProxyConfig{HTTPSProxy: "https://p", CABundle: []byte("bundle")}
	s.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{
		{ContainerID: "*:*:*", Resources: memory("10Mi")}, {ContainerID: "*:*:init", Resources: memory("5Mi")},
	}
}

const podSpecText = `{
	initContainers: [{name: init, image: quay.io/ocm/init:v1}],
	containers: [{name: main, image: quay.io/ocm/agent:v1}]}`

// Shows: hub/decorated-kinds
func TestPodsOfEveryKindAreDecorated(t *testing.T) {
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: w, namespace: ns, ANNOTATIONS}, spec: {template: {spec: ` + podSpecText + `}}}`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: w, namespace: ns, ANNOTATIONS}, spec: ` + podSpecText + `}`
	sets := func(kind string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: w, namespace: ns, ANNOTATIONS}, spec: {template: {spec: ` + podSpecText + `}}}`
	}
	const (
		hook  = `annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}`
		label = `labels: {addon.open-cluster-management.io/addon-pre-delete: ""}`
		yes   = `annotations: {addon.spokelet.io/decorate: "true"}`
		no    = `annotations: {addon.spokelet.io/decorate: "false"}`
	)
	inTemplate := []any{"spec", "template", "spec"}
	tests := map[string]struct {
		manifest, annotations string
		path                  []any
		decorated, optional   bool
	}{
		"a Deployment":                      {sets("Deployment"), "", inTemplate, true, false},
		"a DaemonSet":                       {sets("DaemonSet"), "", inTemplate, true, false},
		"a StatefulSet":                     {sets("StatefulSet"), "", inTemplate, true, true},
		"a ReplicaSet":                      {sets("ReplicaSet"), "", inTemplate, true, true},
		"a CronJob":                         {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: w, namespace: ns}, spec: {jobTemplate: {spec: {template: {spec: ` + podSpecText + `}}}}}`, "", []any{"spec", "jobTemplate", "spec", "template", "spec"}, true, true},
		"a Job that is a hook":              {job, hook, inTemplate, true, true},
		"a Job that is a hook by its label": {job, label, inTemplate, true, true},
		"a Pod that is a hook":              {pod, hook, []any{"spec"}, true, true},
		"another Job, which cannot be changed later": {job, "", inTemplate, false, false},
		"another Pod, which cannot be changed later": {pod, "", []any{"spec"}, false, false},
		"a Job whose author wants it":                {job, yes, inTemplate, true, true},
		"a hook whose author does not want it":       {job, strings.Replace(hook, "{", `{addon.spokelet.io/decorate: "false", `, 1), inTemplate, false, false},
		"a Deployment whose author does not want it": {sets("Deployment"), no, inTemplate, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := strings.Replace(test.manifest, ", ANNOTATIONS", strings.TrimSuffix(", "+test.annotations, ", "), 1)
			in := inputOf(t, everything, manifest)
			in.Template.Registration = []addonv1alpha1.RegistrationSpec{kubeClient()}
			result, err := template.Render(in)
			require.NoError(t, err)
			u := result.Objects[0]
			if !test.decorated {
				assert.Equal(t, object(t, manifest), u.Object)
				return
			}
			here := func(rest ...any) any { return at(t, u, append(append([]any{}, test.path...), rest...)...) }
			wantEnv := []any{
				env("HUB_KUBECONFIG", "/managed/hub-kubeconfig/kubeconfig"), env("CLUSTER_NAME", "cluster1"),
				env("HTTPS_PROXY", "https://p"), env("https_proxy", "https://p"),
				env("CA_BUNDLE_FILE_PATH", "/managed/proxy-ca/ca-bundle.crt"),
			}
			wantMounts := []any{
				map[string]any{"name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig"},
				map[string]any{"name": "proxy-ca-bundle", "mountPath": "/managed/proxy-ca"},
			}
			for _, list := range []string{"containers", "initContainers"} {
				assert.Equal(t, wantEnv, here(list, 0, "env"), list)
				assert.Equal(t, wantMounts, here(list, 0, "volumeMounts"), list)
			}
			secret := map[string]any{"secretName": "a-hub-kubeconfig"}
			if test.optional {
				secret["optional"] = true
			}
			assert.Equal(t, []any{
				map[string]any{"name": "hub-kubeconfig", "secret": secret},
				map[string]any{"name": "proxy-ca-bundle", "configMap": map[string]any{"name": "a-proxy-ca"}},
			}, here("volumes"))
			assert.Equal(t, map[string]any{"disk": "ssd"}, here("nodeSelector"))
			assert.Equal(t, []any{map[string]any{"key": "k", "operator": "Exists"}}, here("tolerations"))
			assert.Equal(t, "m.example.com/agent:v1", here("containers", 0, "image"))
			assert.Equal(t, "m.example.com/init:v1", here("initContainers", 0, "image"))
			assert.Equal(t, map[string]any{"requests": map[string]any{"memory": "10Mi"}}, here("containers", 0, "resources"))
			assert.Equal(t, map[string]any{"requests": map[string]any{"memory": "5Mi"}}, here("initContainers", 0, "resources"))
		})
	}
}

// ownText is the specification of a pod whose author sets everything.
const ownText = `{
	nodeSelector: {own: "yes"}, tolerations: [{key: own}],
	volumes: [{name: hub-kubeconfig, emptyDir: {}}, {name: ca, emptyDir: {}}],
	containers: [{
		name: main,
		env: [{name: HTTPS_PROXY, value: own}, {name: OTHER, value: $(HTTPS_PROXY)}],
		volumeMounts: [{name: ca, mountPath: /managed/proxy-ca/}]}]}`

// Shows: hub/own-settings
func TestWhatTheAuthorSetsStandsThereOnce(t *testing.T) {
	manifest := func(kind string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: w, namespace: ns}, spec: {template: {spec: ` + ownText + `}}}`
	}
	in := inputOf(t, everything, manifest("Deployment"), manifest("StatefulSet"))
	in.Template.Registration = []addonv1alpha1.RegistrationSpec{kubeClient()}
	result, err := template.Render(in)
	require.NoError(t, err)
	deployment, set := result.Objects[0], result.Objects[1]

	added := []any{
		env("HUB_KUBECONFIG", "/managed/hub-kubeconfig/kubeconfig"), env("CLUSTER_NAME", "cluster1"), env("https_proxy", "https://p"),
		env("CA_BUNDLE_FILE_PATH", "/managed/proxy-ca/ca-bundle.crt"),
	}
	assert.Equal(t, append([]any{env("HTTPS_PROXY", "https://p"), env("OTHER", "$(HTTPS_PROXY)")}, added...),
		container(t, deployment, "env"), "under OCM, the added entry is the last of its name and counts")
	assert.Equal(t, append([]any{env("HTTPS_PROXY", "own"), env("OTHER", "$(HTTPS_PROXY)")}, added...),
		container(t, set, "env"), "under OCM, nothing is added")
	assert.Equal(t, map[string]any{"disk": "ssd"}, pod(t, deployment, "nodeSelector"))
	assert.Equal(t, map[string]any{"own": "yes"}, pod(t, set, "nodeSelector"))
	assert.Equal(t, []any{map[string]any{"key": "own"}}, pod(t, set, "tolerations"))
	for _, u := range []*unstructured.Unstructured{deployment, set} {
		assert.Equal(t, []any{
			map[string]any{"name": "ca", "mountPath": "/managed/proxy-ca/"},
			map[string]any{"name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig"},
		}, container(t, u, "volumeMounts"), "no path is mounted twice")
		assert.Equal(t, map[string]any{"name": "hub-kubeconfig", "emptyDir": map[string]any{}}, pod(t, u, "volumes", 0))
		assert.Len(t, pod(t, u, "volumes"), 3, "and no volume stands there twice")
	}
}

func TestPodsThatCannotBeDecorated(t *testing.T) {
	tests := map[string]struct{ manifest, want string }{
		"an unknown value of the annotation": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {addon.spokelet.io/decorate: "no"}}}`,
			`manifest 0 (Job j), .metadata.annotations["addon.spokelet.io/decorate"]: the value "no" is unknown; write true or ` +
				`false, or remove the annotation`,
		},
		"a CronJob without a pod template": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {}}}`,
			`manifest 0 (CronJob j), .spec.jobTemplate.spec.template.spec: it must be an object`,
		},
		"init containers that are no list": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c}], initContainers: {}}}}}`,
			`manifest 0 (DaemonSet d), .spec.template.spec.initContainers: it must be a list of objects`,
		},
		"a registry without a mirror": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c, image: quay.io/ocm/a}]}}}}`,
			`manifest 0 (DaemonSet d), .spec.template.spec: the registries of the cluster or of the configuration have an entry ` +
				`for image quay.io/ocm/a of container c that names no mirror`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.Registries = []addonv1beta1.ImageMirror{{Source: "quay.io/ocm"}}
			}, test.manifest)
			_, err := template.Render(in)
			require.EqualError(t, err, "AddOnTemplate t cannot be rendered: "+test.want)
		})
	}
}

// Shows: hub/mirrors
func TestMirrors(t *testing.T) {
	annotation := func(registries string) map[string]string {
		return map[string]string{"open-cluster-management.io/image-registries": registries}
	}
	mirror := func(pairs ...string) []addonv1beta1.ImageMirror {
		var all []addonv1beta1.ImageMirror
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, addonv1beta1.ImageMirror{Source: pairs[i], Mirror: pairs[i+1]})
		}
		return all
	}
	tests := map[string]struct {
		annotations map[string]string
		registries  []addonv1beta1.ImageMirror
		image, want string
	}{
		"no mirrors":                 {nil, nil, "quay.io/a/b:v1", "quay.io/a/b:v1"},
		"an annotation of others":    {map[string]string{"x": "{"}, nil, "quay.io/a/b:v1", "quay.io/a/b:v1"},
		"an annotation without any":  {annotation(`{}`), nil, "quay.io/a/b:v1", "quay.io/a/b:v1"},
		"a mirror of the annotation": {annotation(`{"registries":[{"source":"quay.io/a","mirror":"m"}]}`), nil, "quay.io/a/b:v1", "m/b:v1"},
		"the configuration replaces the annotation": {
			annotation(`{"registries":[{"source":"quay.io/a","mirror":"m"}]}`), mirror("quay.io/x", "n"), "quay.io/a/b:v1", "quay.io/a/b:v1",
		},
		"the last that fits":              {nil, mirror("quay.io/a", "one", "quay.io", "two", "docker.io", "three"), "quay.io/a/b", "two/a/b"},
		"the image alone, with a digest":  {nil, mirror("quay.io/a/b", "m/c"), "quay.io/a/b@sha256:1", "m/c@sha256:1"},
		"a source as text":                {nil, mirror("quay.io/a", "m"), "quay.io/ab/c", "mb/c"},
		"a source that is a whole path":   {nil, mirror("quay.io/a/", "m"), "quay.io/ab/c", "quay.io/ab/c"},
		"a whole path that fits":          {nil, mirror("quay.io/a/", "m/"), "quay.io/a/c", "m/c"},
		"every image":                     {nil, mirror("", "m/all"), "quay.io/a/b:v1", "m/all/b:v1"},
		"every image, without a registry": {nil, mirror("", "m/all/"), "b:v1", "m/all/b:v1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.Registries = test.registries },
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c, image: "`+test.image+`"}]}}}}`)
			in.Cluster.Annotations = test.annotations
			result, err := template.Render(in)
			require.NoError(t, err)
			assert.Equal(t, test.want, container(t, result.Objects[0], "image"))
		})
	}
}
