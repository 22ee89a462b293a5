package numbers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
)

// undecodable is a hub whose windows cannot be decoded.
type undecodable struct{ client.Reader }

func (undecodable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (undecodable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
}

// Whether an add-on is paused is one metric of nine, and windows have no part in it.
func TestAWindowThatCannotBeDecodedLeavesTheOtherNumbers(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{addonv1alpha1.Install, clusterv1.Install, coordinationv1.AddToScheme} {
		require.NoError(t, install(scheme))
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}).Build()
	n := &Numbers{
		Client: c, AddOns: addonapi.Client{Client: c}, Gates: &gate.Reader{Client: undecodable{}},
		Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
	}
	_, err := n.read(t.Context())
	require.NoError(t, err)
}
