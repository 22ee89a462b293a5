package hubcluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/test/suite"
)

// What package apierror reads is what this API server says: the texts are no promise of Kubernetes.
func TestErrorsOfThisAPIServerAreToldApart(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t, "apierror")
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}
	cfg, err := plane.User("nobody-of-apierror")
	require.NoError(t, err)
	nobody, err := client.New(cfg, client.Options{Scheme: plane.Client.Scheme()})
	require.NoError(t, err)
	impersonating := rest.CopyConfig(cfg)
	impersonating.Impersonate.UserName = "system:serviceaccount:default:default"
	another, err := client.New(impersonating, client.Options{
		Scheme: plane.Client.Scheme(), Mapper: plane.Client.RESTMapper(), // It may not even ask what is served.
	})
	require.NoError(t, err)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "kube-apierror"}}

	for sentence, c := range map[string]struct {
		err  error
		want string
	}{
		"a right is lacking":            {nobody.Create(t.Context(), config.DeepCopy()), "LacksRight"},
		"a user may not act as another": {another.Create(t.Context(), config.DeepCopy()), "CannotImpersonate LacksRight"},
		"a policy refuses":              {plane.Client.Create(t.Context(), cluster, client.DryRunAll), "ByPolicy"},
		"a field cannot be changed":     {changeSelector(t, namespace), "ImmutableField"},
		"a conversion webhook is away":  {unconverted(t), "NotConverted"},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Error(t, c.err)
			assert.Equal(t, c.want, classes(c.err), c.err.Error())
		})
	}
}

// classes returns what package apierror says of an error.
func classes(err error) string {
	said := ""
	for _, is := range []struct {
		name string
		true bool
	}{
		{"CannotImpersonate", apierror.CannotImpersonate(err)}, {"LacksRight", apierror.LacksRight(err)},
		{"ByPolicy", apierror.ByPolicy(err, "managedclusters.spokelet.io")},
		{"ImmutableField", apierror.ImmutableField(err)}, {"NotConverted", apierror.NotConverted(err)},
	} {
		switch {
		case is.true && said != "":
			said += " " + is.name
		case is.true:
			said = is.name
		}
	}
	return said
}

// changeSelector returns the error of a change of the selector of a Deployment.
func changeSelector(t *testing.T, namespace string) error {
	t.Helper()
	labels := map[string]string{"app": "x"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	require.NoError(t, plane.Client.Create(t.Context(), deployment))
	deployment.ResourceVersion = ""
	deployment.Spec.Selector.MatchLabels["more"] = "y"
	deployment.Spec.Template.Labels["more"] = "y"
	return plane.Client.Update(t.Context(), deployment)
}

// unconverted returns the error of a read of an object that a webhook would have to convert which does not listen.
func unconverted(t *testing.T) error {
	t.Helper()
	version := func(name string, stored bool) any {
		return map[string]any{
			"name": name, "served": true, "storage": stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "texts.apierror.example.com"},
		"spec": map[string]any{
			"group": "apierror.example.com", "scope": "Cluster",
			"names":    map[string]any{"plural": "texts", "kind": "Text"},
			"versions": []any{version("v1", true), version("v2", false)},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"},
				"clientConfig":             map[string]any{"url": "https://127.0.0.1:1/convert"},
			}},
		},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), crd))
	t.Cleanup(func() { require.NoError(t, plane.Client.Delete(context.WithoutCancel(t.Context()), crd)) })
	text := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apierror.example.com/" + version, "kind": "Text", "metadata": map[string]any{"name": "x"},
		}}
	}
	eventuallyCreate(t, plane.Client, text("v1"))
	var said error
	suite.Eventually(t, func() error {
		said = plane.Client.Get(t.Context(), client.ObjectKey{Name: "x"}, text("v2"))
		if apierrors.IsNotFound(said) {
			return said // It is not served yet.
		}
		if said == nil {
			return errors.New("it was converted")
		}
		return nil
	})
	return said
}
