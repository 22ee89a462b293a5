package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// liveHub is a hub that is read without a cache.
type liveHub struct {
	cluster.Cluster
	reader client.Reader
}

// GetAPIReader implements cluster.Cluster.
func (h liveHub) GetAPIReader() client.Reader { return h.reader }

// Shows: registration/managed-namespaces, registration/absent-told
func TestOnlyAHubThatSaysThatTheClusterDoesNotExistIsBelieved(t *testing.T) {
	resource := schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "managedclusters"}
	for sentence, c := range map[string]struct {
		answer error
		gone   bool
		says   string
	}{
		"it exists":                           {nil, false, ""},
		"the hub says that it does not exist": {apierrors.NewNotFound(resource, "c1"), true, "the hub has no ManagedCluster c1"},
		"the hub does not serve the kind": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "c1", "404 page not found", 0, true), false,
			"cannot read ManagedCluster c1: the server could not find the requested resource",
		},
		"the hub does not answer":             {errors.New("connection refused"), false, "c1: connection refused"},
		"the credential is not accepted":      {apierrors.NewUnauthorized("expired"), false, "c1: expired"},
		"the hub has no rights for the agent": {apierrors.NewForbidden(resource, "c1", errors.New("no")), false, "is forbidden"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return c.answer
				},
			})
			r := &Reconciler{Cluster: "c1", Hub: liveHub{reader: reader}}
			gone, why := r.isGone(t.Context())
			assert.Equal(t, c.gone, gone)
			assert.Contains(t, why, c.says)
			assert.Equal(t, c.answer == nil, why == "")
		})
	}
}
