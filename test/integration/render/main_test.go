// Package render_test compares what render prints from files with what a hub manager writes for the same objects on a
// real API server, for add-ons that are made of templates and for one that is made of code. The tests play the clusters.
package render_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubmanager "github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var hub *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		hub = suite.Start(t, sandbox.Options{Name: "render"}, manifests.CRDs(), manifests.Hub())
		hub.AwaitPolicies(t)
		agents, err := addon.NewFixed(newNotes(t))
		require.NoError(t, err)
		suite.StartHub(t, hub, func(c *hubmanager.Config) {
			// The tests write the decisions; objects of both versions of the API are applied.
			c.Placement, c.InstallCRDs, c.Agents = false, true, addon.Registry{agents}
			suite.ServeWebhook(t, c)
		})
	})
}

// newNotes returns an add-on of code, with a hook and values from the annotation of the add-on.
func newNotes(t suite.T) addon.Agent {
	agent, err := addon.New(addon.Options{
		Name: "notes", Version: "v1", Values: []addon.ValuesFunc{addon.GetValuesFromAddonAnnotation},
		Manifests: addon.ManifestsFunc(func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			text, _ := in.Values["text"].(string)
			return []runtime.Object{
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Cluster.Name},
					Data:       map[string]string{"text": text},
				},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: in.Namespace, Name: "burn",
					Annotations: map[string]string{"addon.open-cluster-management.io/addon-pre-delete": ""},
				}},
			}, nil
		}),
		KubeClient:   &addon.KubeClient{},
		HealthProber: addon.NewWorkProber(nil), HostedMode: true,
		ClusterFacts: []addon.ClusterFact{},
	})
	require.NoError(t, err)
	return agent
}
