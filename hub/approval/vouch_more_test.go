package approval

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
)

// trimmed reads as the cache of the hub manager does.
type trimmed struct{ client.Client }

func (c trimmed) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	_, err := approve.Trim(o)
	return err
}

// SubResource writes as the API server does, which takes the metadata from the request (see Reconciler.inFull).
func (c trimmed) SubResource(name string) client.SubResourceClient {
	return withMetadata{c.Client.SubResource(name), c.Client}
}

type withMetadata struct {
	client.SubResourceClient
	all client.Client
}

func (c withMetadata) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	sent, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	if err := c.SubResourceClient.Update(ctx, o, opts...); err != nil {
		return err
	}
	sent.SetResourceVersion(o.GetResourceVersion())
	return c.all.Update(ctx, sent)
}

// A write of the approval of a request writes its metadata, too, of which the cache holds a part only.
func TestAConfirmationLeavesTheMetadataOfARequest(t *testing.T) {
	request := addonRequest(t, kube(), csrs.ClusterUser("c1", "agent"))
	request.Labels["team"] = "a"
	request.Annotations = map[string]string{"note": "of the author"}
	request.Finalizers = []string{"example.com/audit"}
	request.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "u"}}
	cluster, addon, _ := csrs.Subject(request)
	managed := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addon}}
	r, w := newReconciler(t, request, managed, addOn)
	r.Client, r.Identity = trimmed{r.Client}, IdentityConfirmed
	_, err := r.Reconcile(t.Context(), requestOf(request))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"update approval": 1}, w.sent)
	var after certificatesv1.CertificateSigningRequest
	require.NoError(t, r.Live.Get(t.Context(), client.ObjectKeyFromObject(request), &after))
	_, _, found := approve.Vouched(&after)
	require.True(t, found)
	assert.Equal(t, "a", after.Labels["team"])
	assert.Equal(t, "of the author", after.Annotations["note"])
	assert.Equal(t, []string{"example.com/audit"}, after.Finalizers)
	assert.Len(t, after.OwnerReferences, 1)
}
