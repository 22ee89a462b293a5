package ship_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// warnings collects the warnings of an API server.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 {
		w.text = append(w.text, text)
	}
}

// TestTheAPIServerAcceptsEverythingThatShips: every object of every base, overlay, sample and variant of the chart,
// by a dry run with strict validation of its fields. What others need to be accepted is created. Pods are created by
// dry run, too, because Pod Security refuses pods and not Deployments.
func TestTheAPIServerAcceptsEverythingThatShips(t *testing.T) {
	plane := suite.Start(t, sandbox.Options{Name: "ship"}, manifests.CRDs())
	sets := map[string][]*unstructured.Unstructured{}
	for name, v := range variants() {
		sets[name+" by kustomize"], sets[name+" by the chart"] = v.byKustomize(t), v.byHelm(t)
		for _, object := range sets[name+" by kustomize"] {
			if object.GetKind() == "Namespace" { // the chart is installed into one that exists
				text, err := yaml.Marshal(object.Object)
				require.NoError(t, err)
				require.NoError(t, plane.Apply(t.Context(), text))
			}
		}
	}
	for _, folder := range []string{
		"manifests/overlays/klusterlet-executor", "manifests/overlays/klusterlet-hosted-addons", "manifests/hub/optional",
		"manifests/samples/hello", "manifests/samples/hub-config", "manifests/samples/policies",
	} {
		sets[folder] = kustomized(t, folder)
	}
	for name, objects := range sets {
		t.Run(name, func(t *testing.T) { accept(t, plane, objects) })
	}
}

// accept applies objects of which others depend, and all others by dry run.
func accept(t *testing.T, plane *suite.Plane, objects []*unstructured.Unstructured) {
	t.Helper()
	said := &warnings{}
	config := rest.CopyConfig(plane.Admin())
	config.WarningHandlerWithContext = said
	c, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	require.NoError(t, err)
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for _, object := range withoutMonitoring(objects) {
		options := []client.ApplyOption{client.FieldOwner("ship"), client.ForceOwnership}
		switch object.GetKind() {
		case "Namespace", "CustomResourceDefinition", "ServiceAccount":
			text, err := yaml.Marshal(object.Object)
			require.NoError(t, err)
			require.NoError(t, plane.Apply(t.Context(), text))
		default:
			options = append(options, client.DryRunAll)
		}
		applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := c.Apply(t.Context(), applied, options...); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			var deployment appsv1.Deployment
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: deployment.Namespace, Name: "pod", Labels: deployment.Spec.Template.Labels,
				},
				Spec: deployment.Spec.Template.Spec,
			}
			suite.Eventually(t, func() error { return c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll) })
		}
	}
	assert.Empty(t, said.text, "warnings of the API server")
}

// TestOurPodsAreRestricted: in a namespace that enforces the profile "restricted", whether it has our labels or not.
func TestOurPodsAreRestricted(t *testing.T) {
	for name, v := range variants() {
		for _, object := range v.byKustomize(t) {
			if object.GetKind() == "Namespace" && object.GetName() == v.namespace {
				assert.Equal(t, "restricted", object.GetLabels()["pod-security.kubernetes.io/enforce"], name)
			}
		}
	}
}
