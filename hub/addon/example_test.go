package addon_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// An add-on that is a function: it puts a greeting on each cluster.
func ExampleNew() {
	agent, err := addon.New(addon.Options{
		Name: "greeting",
		Manifests: addon.ManifestsFunc(func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			return []runtime.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "greeting", Namespace: in.Namespace},
				Data:       map[string]string{"text": fmt.Sprintf("%v, %s", in.Values["text"], in.Cluster.Name)},
			}}, nil
		}),
		Values: []addon.ValuesFunc{
			func(context.Context, addon.Request) (addon.Values, error) { return addon.Values{"text": "Hello"}, nil },
			addon.GetValuesFromAddonAnnotation,
		},
		KubeClient:   &addon.KubeClient{Roles: []addon.HubRole{{Name: "greeting-agent"}}},
		HealthProber: addon.NewLeaseProber(),
		ConfigGVRs:   []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// The hub manager asks the agent about one cluster at a time.
	rendering, err := agent.Render(context.Background(), addon.Request{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
		AddOn:   &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "greeting", Namespace: "cluster1"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range rendering.Objects {
		fmt.Println(object.GetKind(), object.GetNamespace(), object.Object["data"])
	}
	// Output: ConfigMap open-cluster-management-agent-addon map[text:Hello, cluster1]
}

// A value of each source counts more than one of an earlier source.
func ExampleMergeValues() {
	fmt.Println(addon.MergeValues(
		addon.Values{"image": addon.Values{"name": "agent", "tag": "v1"}},
		addon.Values{"image": addon.Values{"tag": "v2"}},
	))
	// Output: map[image:map[name:agent tag:v2]]
}

// The Deployments by which the health of an agent is judged.
func ExampleNewDeploymentProber() {
	prober := addon.NewDeploymentProber()
	fmt.Println(prober.Type)
	// Output: Work
}
