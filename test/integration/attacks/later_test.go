package attacks_test

import (
	"context"
	"crypto/elliptic"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/test/suite"
)

// post sends a request and deletes it afterwards.
func post(t *testing.T, a forgery) *sent {
	t.Helper()
	s := &sent{a, a.build(t)}
	require.NoError(t, shared.clients[a.as].Create(t.Context(), s.request))
	deleteAfterwards(t, s.request)
	return s
}

func TestARequestThatWasThereBeforeItsClusterGainsNothing(t *testing.T) {
	s := post(t, forgery{as: agent10, asks: forAddon("later", "hello", kube)})
	suite.Eventually(t, func() error { return toldRules(t.Context(), s, rules("ClusterNotFound")) })

	cluster := newCluster("later")
	require.NoError(t, shared.admin.Create(t.Context(), cluster))
	t.Cleanup(func() { removeCluster(t, "later") })
	suite.Eventually(t, func() error {
		ctx := t.Context()
		return toldRules(ctx, s, rules("ClusterNotFound", "ClusterNotAccepted"))
	})
	require.NoError(t, shared.accept(t.Context(), "later", true))
	suite.Eventually(t, func() error {
		ctx := t.Context()
		return toldRules(ctx, s, rules("ClusterNotFound", "ClusterNotAccepted", "AddonNotFound"))
	})
	suite.Eventually(t, func() error {
		ctx := t.Context()
		return shared.enable(ctx, client.ObjectKey{Namespace: "later", Name: "hello"})
	})
	s.rules = rules("ClusterNotFound", "ClusterNotAccepted", "AddonNotFound", approve.ReasonRequesterNotTrusted)
	suite.Eventually(t, func() error { return told(t.Context(), s) })
	assertNotPassed(t, s)
}

// removeCluster deletes a cluster and waits until it is gone, so that the test can run again.
func removeCluster(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), suite.Timeout)
	defer cancel()
	cluster := newCluster(name)
	assert.NoError(t, shared.admin.Delete(ctx, cluster))
	assert.NoError(t, poll(ctx, func(ctx context.Context) error {
		err := shared.admin.Get(ctx, client.ObjectKey{Name: name}, cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			return errors.New("the cluster is still there")
		}
		return err
	}))
}

// TestARenewalThatWasRefusedIsApprovedOnceTheClusterIsAccepted is W-54: nobody has to wait or to ask again.
func TestARenewalThatWasRefusedIsApprovedOnceTheClusterIsAccepted(t *testing.T) {
	s := post(t, forgery{as: denied, asks: csr.ForCluster("denied", agentName), rules: rules(approve.ReasonRenewalNotAllowed)})
	suite.Eventually(t, func() error { return told(t.Context(), s) })
	assertNotPassed(t, s)

	require.NoError(t, shared.accept(t.Context(), "denied", true))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), suite.Timeout)
		defer cancel()
		assert.NoError(t, shared.accept(ctx, "denied", false))
	})
	suite.Eventually(t, func() error { return shared.issued(t.Context(), s.request) })
}

// TestWhatIsSignedIsWhatTheHubWantsAtThatInstant changes the subject of a custom signer between the approval of a
// request and its signature.
func TestWhatIsSignedIsWhatTheHubWantsAtThatInstant(t *testing.T) {
	s := post(t, forgery{as: agent1, asks: forAddon("cluster1", "changing", custom)})
	suite.Eventually(t, func() error { return toldRules(t.Context(), s, rules("SigningCAMissing")) })

	template := &addonv1alpha1.AddOnTemplate{ObjectMeta: in("", "changing")}
	subject := func(user string) attempt {
		return change(template.DeepCopy(), `{"spec":{"registration":[{"type":"CustomSigner","customSigner":{`+
			`"signerName":"example.com/late","subject":{"user":"`+user+`"},"signingCA":{"name":"late","namespace":"signing"}}}]}}`)
	}
	require.NoError(t, subject("after")(t.Context(), shared.admin))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, subject("before")(ctx, shared.admin))
		assert.NoError(t, shared.admin.Delete(ctx, &corev1.Secret{ObjectMeta: in("signing", "late")}))
	})
	// The hub manager approves this one when it has seen the new subject. Without it, the Secret may be seen first.
	asks := forAddon("cluster1", "changing", custom)
	asks.User = "after"
	honest := post(t, forgery{as: agent1, asks: asks})
	suite.Eventually(t, func() error { return toldRules(t.Context(), honest, rules("SigningCAMissing")) })
	key, err := ecdsaKey(elliptic.P384())()
	require.NoError(t, err)
	require.NoError(t, shared.createCA(t.Context(), "late", key, "changing"))

	suite.Eventually(t, func() error { return toldRules(t.Context(), s, rules("SigningCAMissing", "NotSigned")) })
	suite.Eventually(t, func() error { return shared.issued(t.Context(), honest.request) })

	var current certificatesv1.CertificateSigningRequest
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(s.request), &current))
	assert.Empty(t, current.Status.Certificate)
}
