package addon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// An agent starts with an API server that is behind, or reads its cache before it has the last change.
//
// Shows: registration/removed-when-confirmed
func TestASecretIsRemovedOnlyForWhatTheAPIServerHas(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	applied := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied, Status: metav1.ConditionTrue, Reason: "X",
		LastTransitionTime: metav1.NewTime(noon),
	}
	addOn := func(registrations ...addonv1beta1.RegistrationConfig) *addonv1beta1.ManagedClusterAddOn {
		a := addonWith(registrations...).addon
		a.Status.Conditions = []metav1.Condition{applied}
		return a
	}
	signer := func(name string) addonv1beta1.RegistrationConfig { return customSigner("example.com/" + name) }
	deleting := addOn()
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/x"}
	elsewhere := addOn(signer("b"))
	elsewhere.Status.Namespace = "elsewhere"
	for sentence, tc := range map[string]struct {
		cached, live *addonv1beta1.ManagedClusterAddOn
		removed      bool
	}{
		"it has no registrations":                         {cached: addOn(), live: addOn(), removed: true},
		"it had none, and has one now":                    {cached: addOn(), live: addOn(signer("a"))},
		"it has another one than before":                  {cached: addOn(signer("b")), live: addOn(signer("b")), removed: true},
		"it had another one before":                       {cached: addOn(signer("b")), live: addOn(signer("a"))},
		"it had one of two":                               {cached: addOn(signer("b")), live: addOn(signer("b"), signer("a"))},
		"it is being deleted, and its cleanup needs it":   {cached: addOn(), live: deleting},
		"it is gone, which the cache is about to show":    {cached: addOn()},
		"it runs in another namespace than it did before": {cached: addOn(signer("b")), live: elsewhere},
	} {
		t.Run(sentence, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "hello-example.com-a-client-cert", UID: "u",
				Labels: map[string]string{names.LabelCredential: names.CredentialAddon, names.LabelClusterName: "c1", names.LabelAddonName: "hello"},
			}}
			spoke := fake.NewClientBuilder().WithObjects(secret).Build()
			hub := fake.NewClientBuilder().WithScheme(scheme)
			if tc.live != nil {
				hub = hub.WithObjects(tc.live)
			}
			r := &Reconciler{
				Hub: lagging{live: hub.Build()}, addons: addonapi.Client{Wire: addonapi.WireBeta},
				sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: spoke}},
			}
			f := addonWith()
			f.addon = tc.cached
			f.secrets = []ownedSecret{{side: sideAgent, key: client.ObjectKeyFromObject(secret), uid: "u"}}
			p := decide(f)
			results := make([]result, len(p.serve))
			for i := range results {
				results[i].served = true
			}
			err := r.remove(t.Context(), f, p, results)
			gone := apierrors.IsNotFound(spoke.Get(t.Context(), client.ObjectKeyFromObject(secret), secret.DeepCopy()))
			assert.Equal(t, tc.removed, gone)
			if tc.removed {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Equal(t, tc.live != nil, reconcile.IsLostRace(err), "%v", err)
		})
	}
}
