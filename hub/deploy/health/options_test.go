package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
)

func rendered(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "ns"}, "spec": spec,
	}}
}

func paths(all ...string) workv1.FeedbackRule {
	rule := workv1.FeedbackRule{Type: workv1.JSONPathsType}
	for _, path := range all {
		rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: path, Path: ".status." + path})
	}
	return rule
}

func option(group, resource, name string, rules ...workv1.FeedbackRule) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: "ns", Name: name},
		FeedbackRules:      rules,
	}
}

// Shows: hub/health-probes
func TestOptions(t *testing.T) {
	wellKnown := workv1.FeedbackRule{Type: workv1.WellKnownStatusType}
	pods := workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
		{Name: "ReadyReplicas", Path: ".status.readyReplicas"}, {Name: "Replicas", Path: ".status.replicas"},
		{Name: "SpecReplicas", Path: ".spec.replicas"},
		{Name: "Generation", Path: ".metadata.generation"}, {Name: "ObservedGeneration", Path: ".status.observedGeneration"},
	}}
	updated := func(more ...workv1.JsonPath) workv1.FeedbackRule {
		return workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: append([]workv1.JsonPath{
			{Name: "SpecReplicas", Path: ".spec.replicas"}, {Name: "UpdatedReplicas", Path: ".status.updatedReplicas"},
			{Name: "Generation", Path: ".metadata.generation"}, {Name: "ObservedGeneration", Path: ".status.observedGeneration"},
		}, more...)}
	}
	objects := []*unstructured.Unstructured{
		rendered("apps/v1", "Deployment", "d", nil),
		rendered("apps/v1", "Deployment", "off", map[string]any{"replicas": int64(0)}),
		rendered("apps/v1", "DaemonSet", "s", nil),
		rendered("apps/v1", "StatefulSet", "t", map[string]any{"replicas": int64(2)}),
		rendered("v1", "ConfigMap", "c", nil),
	}
	own := func(group, resource, name string, rules ...workv1.FeedbackRule) addon.ProbeField {
		return addon.ProbeField{ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Namespace: "*", Name: name,
		}, FeedbackRules: rules}
	}
	exact := own("", "configmaps", "c", paths("x"))
	exact.Namespace = "ns"
	elsewhere := option("", "mice", "m", paths("tail"))
	elsewhere.ResourceIdentifier.Namespace = "*"
	work := func(fields ...addon.ProbeField) addon.Setup {
		return addon.Setup{Health: addon.HealthWork, WorkProbe: &addon.WorkProbe{Fields: fields}}
	}
	for sentence, tc := range map[string]struct {
		setup   addon.Setup
		configs []workv1.ManifestConfigOption
		want    []workv1.ManifestConfigOption
	}{
		"no probe":              {addon.Setup{}, nil, nil},
		"a lease":               {addon.Setup{Health: addon.HealthLease}, nil, nil},
		"the add-on itself":     {addon.Setup{Health: addon.HealthCustom}, nil, nil},
		"works without a probe": {addon.Setup{Health: addon.HealthWork}, nil, nil},
		"Deployments": {
			addon.Setup{Health: addon.HealthDeployments}, nil,
			[]workv1.ManifestConfigOption{option("apps", "deployments", "d", wellKnown, updated())},
		},
		"workloads": {
			addon.Setup{Health: addon.HealthWorkloads}, nil, []workv1.ManifestConfigOption{
				option("apps", "deployments", "d", wellKnown, updated()), option("apps", "daemonsets", "s", wellKnown),
				option("apps", "statefulsets", "t", pods),
			},
		},
		"the rules of the author for many objects count for each of them": {
			addon.Setup{Health: addon.HealthDeployments},
			[]workv1.ManifestConfigOption{option("apps", "deployments", "x", paths("no")), option("apps", "deployments", "*", paths("a")), option("apps", "deployments", "d", paths("b"))},
			[]workv1.ManifestConfigOption{option("apps", "deployments", "d", wellKnown, updated(paths("a").JsonPaths...))},
		},
		"one object": {work(exact), nil, []workv1.ManifestConfigOption{option("", "configmaps", "c", paths("x"))}},
		"many objects": {
			work(own("apps", "deployments", "*", wellKnown, paths("a"))), nil,
			[]workv1.ManifestConfigOption{option("apps", "deployments", "d", wellKnown, paths("a")), option("apps", "deployments", "off", wellKnown, paths("a"))},
		},
		"two fields for one object": {
			work(own("apps", "daemonsets", "*", paths("a")), own("apps", "daemonsets", "s", paths("a", "b"), wellKnown)), nil,
			[]workv1.ManifestConfigOption{option("apps", "daemonsets", "s", paths("a", "b"), wellKnown)},
		},
		"an object of a kind with an unusual plural": {
			work(own("", "mice", "m", paths("tail"))), nil, []workv1.ManifestConfigOption{elsewhere},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rendering := addon.Rendering{Objects: objects, ManifestConfigs: tc.configs}
			assert.Equal(t, tc.want, health.Options(tc.setup, rendering))
			assert.Equal(t, tc.want, health.Options(tc.setup, rendering), "nothing that was given is changed")
		})
	}
}

func TestWhatAWorkAsksFor(t *testing.T) {
	deployment, set := object("Deployment", "d"), object("StatefulSet", "t")
	rendering := addon.Rendering{Objects: []*unstructured.Unstructured{
		rendered("apps/v1", "Deployment", "d", nil), rendered("apps/v1", "StatefulSet", "t", nil),
	}}
	asking := &workv1.ManifestWork{}
	asking.Spec.ManifestConfigs = health.Options(addon.Setup{Health: addon.HealthWorkloads}, rendering)
	earlier := &workv1.ManifestWork{}
	earlier.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		option("apps", "deployments", "d", workv1.FeedbackRule{Type: workv1.WellKnownStatusType}),
	}
	assert.True(t, health.Asks(addon.HealthWorkloads, deployment, earlier), "a work of an earlier hub manager")
	other := &workv1.ManifestWork{}
	other.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		option("apps", "deployments", "d", paths("a")), option("apps", "statefulsets", "t", paths("ReadyReplicas")),
	}
	for _, o := range []health.Object{deployment, set} {
		assert.True(t, health.Judges(addon.HealthWorkloads, o))
		assert.True(t, health.Asks(addon.HealthWorkloads, o, asking), o)
		assert.False(t, health.Asks(addon.HealthWorkloads, o, other), o)
		assert.False(t, health.Asks(addon.HealthWorkloads, o, &workv1.ManifestWork{}), o)
		assert.False(t, health.Judges(addon.HealthLease, o))
	}
	assert.False(t, health.Asks(addon.HealthDeployments, set, asking), "what is not judged is not asked for")
}

func TestWhichProbesJudgeWorks(t *testing.T) {
	for probe, want := range map[addon.HealthProbe]bool{
		addon.HealthUnchanged: false, addon.HealthLease: false, addon.HealthCustom: false,
		addon.HealthWork: true, addon.HealthDeployments: true, addon.HealthWorkloads: true,
	} {
		assert.Equal(t, want, health.ByWorks(probe), "%q", probe)
	}
}
