package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: registration/hosting-claim
func TestTheClaimOnTheClusterOfTheAgentIsKept(t *testing.T) {
	resource := clusterClaims().WithVersion("v1alpha1")
	objects := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "ClusterClaimList"})
	r := &Reconciler{hosting: objects.Resource(resource)}
	for _, value := range []string{"", "hosting", "other", "other", ""} {
		before := len(objects.Actions())
		require.NoError(t, r.claimHosting(t.Context(), value))
		assert.LessOrEqual(t, len(objects.Actions())-before, 2, "a read and a write")
		have, err := r.hosting.Get(t.Context(), names.ClaimHostingCluster, metav1.GetOptions{})
		if value == "" {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			continue
		}
		require.NoError(t, err)
		got, _, err := unstructured.NestedString(have.Object, "spec", "value")
		require.NoError(t, err)
		assert.Equal(t, value, got)
	}
}

func TestWhenTheClaimOnTheClusterOfTheAgentIsWritten(t *testing.T) {
	for sentence, tc := range map[string]struct{ want, has, written *string }{
		"it is left alone":             {has: ptr.To("h")},
		"it is not known":              {want: ptr.To("h")},
		"it is there":                  {want: ptr.To("h"), has: ptr.To("h")},
		"it is not there":              {want: ptr.To("h"), has: ptr.To(""), written: ptr.To("h")},
		"it has another value":         {want: ptr.To("h"), has: ptr.To("x"), written: ptr.To("h")},
		"it goes":                      {want: ptr.To(""), has: ptr.To("x"), written: ptr.To("")},
		"there is none, and should be": {want: ptr.To(""), has: ptr.To("")},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{cluster: acceptedCluster(), health: healthy()}
			f.hosting, f.hosts = tc.want, tc.has
			assert.Equal(t, tc.written, decide(f).hosting)
		})
	}
	assert.True(t, ClaimRules{}.isReserved(names.ClaimHostingCluster), "no limit keeps it from the hub")
}
