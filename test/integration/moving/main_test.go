// Package moving_test moves a hub from OCM to the hub manager and back, by the commands of
// docs/operations/move-from-ocm.md. What OCM leaves on a hub is built as facts: nothing of OCM runs here.
package moving_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// patience is how long anything may take before a test fails.
	patience = 60 * time.Second
	// tick is how often a test looks.
	tick = 50 * time.Millisecond
)

// shared is what the functions of the test use.
var shared struct {
	plane *sandbox.ControlPlane
	admin client.Client
}

func TestMain(m *testing.M) {
	os.Exit(sandbox.Main(m, func(context.Context) (func(), error) { return func() {}, nil }))
}

// startPlane starts a control plane of its own for a test, because a hub cannot be moved twice.
func startPlane(t *testing.T) {
	t.Helper()
	plane, err := sandbox.Start(t.Context(), sandbox.Options{Name: "moving"})
	require.NoError(t, err)
	t.Cleanup(plane.Stop)
	shared.plane = plane
	shared.admin, err = newClient(plane.Admin())
	require.NoError(t, err)
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install,
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// eventually waits until holds returns nil. Conditions run in the goroutine of the test, so they may use require.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s: still not so after %s: %v", what, patience, err)
		<-ticker.C
	}
}

// steadily checks that holds keeps returning nil for a while.
func steadily(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for time.Now().Before(deadline) {
		require.NoError(t, holds(), what)
		<-ticker.C
	}
}

// notYet is an error that says what is missing.
func notYet(format string, args ...any) error { return fmt.Errorf(format, args...) }
