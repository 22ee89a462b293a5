package addon_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// request is a request for add-on weather on cluster c1 with these configurations.
func request(t *testing.T, configs ...addonv1beta1.AddOnDeploymentConfigSpec) addon.Request {
	t.Helper()
	r := addon.Request{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		AddOn: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: "weather", Namespace: "c1", Annotations: map[string]string{}},
		},
	}
	r.Cluster.Status.Version.Kubernetes = "v1.31.2"
	for _, spec := range configs {
		config := addonv1beta1.AddOnDeploymentConfig{Spec: spec}
		config.Name, config.Namespace = "config", "c1"
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&config)
		require.NoError(t, err)
		chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: content}}
		chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
		chosen.Namespace, chosen.Name, chosen.SpecHash = "c1", "config", "hash"
		r.Choice.Configs = append(r.Choice.Configs, chosen)
	}
	return r
}

// deployment returns a Deployment as an author builds it.
func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "weather"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "agent", Image: "quay.io/weather/agent:v1"}},
		}}},
	}
}

// makes is a builder of fixed objects.
func makes(objects ...runtime.Object) addon.ManifestsFunc {
	return func(context.Context, addon.Input) ([]runtime.Object, error) { return objects, nil }
}

// build returns the agent of options with a name and manifests.
func build(t *testing.T, options addon.Options) addon.Agent {
	t.Helper()
	if options.Name == "" {
		options.Name = "weather"
	}
	if options.Manifests == nil {
		options.Manifests = makes(deployment("agent"))
	}
	agent, err := addon.New(options)
	require.NoError(t, err)
	return agent
}
