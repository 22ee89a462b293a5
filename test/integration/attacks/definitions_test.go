package attacks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	webhooksOfOurs   = "manifestworks.admission.spokelet.io"
	definitionOfOurs = "placements.cluster.open-cluster-management.io"
)

// bare is an object with which a user changes what an API server does, without any content.
func bare(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	group := "admissionregistration.k8s.io"
	if kind == "CustomResourceDefinition" {
		group = "apiextensions.k8s.io"
	}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	u.SetName(name)
	return u
}

// apply applies an object without effect.
func apply(object *unstructured.Unstructured) attempt {
	return func(ctx context.Context, c client.Client) error {
		data, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		return c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("forgery"), client.DryRunAll)
	}
}

// TestTheTokenOfTheHubManagerCannotWriteWebhookConfigurations: RBAC bounds the names of what is created, too, as long as
// that is applied.
//
// Shows: security/webhook-rights
func TestTheTokenOfTheHubManagerCannotWriteWebhookConfigurations(t *testing.T) {
	manager := shared.clients[theManager]
	for sentence, try := range map[string]attempt{
		"creates a definition":                       create(bare("CustomResourceDefinition", "pods.example.com")),
		"creates a definition of ours":               create(bare("CustomResourceDefinition", definitionOfOurs)),
		"applies a definition of its own":            apply(bare("CustomResourceDefinition", "pods.example.com")),
		"deletes a definition":                       remove(bare("CustomResourceDefinition", definitionOfOurs)),
		"creates a mutating webhook":                 create(bare("MutatingWebhookConfiguration", "mine")),
		"creates a mutating webhook of our name":     create(bare("MutatingWebhookConfiguration", webhooksOfOurs)),
		"applies a mutating webhook of its own":      apply(bare("MutatingWebhookConfiguration", "mine")),
		"creates a validating webhook":               create(bare("ValidatingWebhookConfiguration", "mine")),
		"applies the webhook for ManifestWorks":      apply(bare("ValidatingWebhookConfiguration", webhooksOfOurs)),
		"applies a validating webhook of its own":    apply(bare("ValidatingWebhookConfiguration", "mine")),
		"applies a policy that lets everything pass": apply(bare("ValidatingAdmissionPolicy", policyRequests)),
	} {
		t.Run(sentence, func(t *testing.T) {
			err := try(t.Context(), manager)
			assert.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
		})
	}
	t.Run("while it applies what it ships, also what is not there yet", func(t *testing.T) {
		err := apply(bare("CustomResourceDefinition", definitionOfOurs))(t.Context(), manager)
		assert.False(t, apierrors.IsForbidden(err), "the answer is %v", err)
	})
}

// TestTheBootstrapIdentitySeesNoFleet: who may join learns neither which clusters there are nor what is in ConfigMaps.
func TestTheBootstrapIdentitySeesNoFleet(t *testing.T) {
	joining := shared.clients[bootstrap]
	for sentence, try := range map[string]attempt{
		"lists ManagedClusters":                 list(&clusterv1.ManagedClusterList{}),
		"reads a ConfigMap of Kubernetes":       get(&corev1.ConfigMap{ObjectMeta: in("kube-system", "extension-apiserver-authentication")}),
		"lists ConfigMaps":                      list(&corev1.ConfigMapList{}, client.InNamespace("kube-public")),
		"accepts a cluster":                     change(newCluster("waiting"), `{"spec":{"hubAcceptsClient":true}}`),
		"reads a ConfigMap of a cluster":        get(&corev1.ConfigMap{ObjectMeta: in("cluster1", "any")}),
		"reads a Secret beside its own account": get(&corev1.Secret{ObjectMeta: in("open-cluster-management", "any")}),
	} {
		t.Run(sentence, func(t *testing.T) {
			err := try(t.Context(), joining)
			assert.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
		})
	}
	t.Run("while tools read where the hub is", func(t *testing.T) {
		err := get(&corev1.ConfigMap{ObjectMeta: in("kube-public", "cluster-info")})(t.Context(), joining)
		assert.NoError(t, client.IgnoreNotFound(err))
	})
}
