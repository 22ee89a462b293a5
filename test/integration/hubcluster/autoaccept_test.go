package hubcluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const acceptedOn = "open-cluster-management.io/automatically-accepted-on"

// Shows: registration/accepted-automatically
func TestAClusterOfATrustedUserNeedsNoPerson(t *testing.T) {
	t.Parallel()
	bootstrap := userClient(t, trustedUser, "system:bootstrappers:managedcluster")
	orders := map[string]func(string) *certificatesv1.CertificateSigningRequest{
		"trusted-cluster-first": func(name string) *certificatesv1.CertificateSigningRequest {
			join(t, bootstrap, name)
			return request(t, bootstrap, name, nil)
		},
		"trusted-request-first": func(name string) *certificatesv1.CertificateSigningRequest {
			r := request(t, bootstrap, name, nil)
			join(t, bootstrap, name)
			return r
		},
	}
	for name, in := range orders {
		t.Run(name, func(t *testing.T) {
			asked := in(name)
			expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
				"HubClusterAdminAccepted")
			cluster := getCluster(t, name)
			assert.True(t, cluster.Spec.HubAcceptsClient)
			at, err := time.Parse(time.RFC3339, cluster.Annotations[acceptedOn])
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), at, suite.Timeout)
			suite.Eventually(t, func() error {
				require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(asked), asked))
				return equal(true, len(asked.Status.Certificate) > 0)
			})
		})
	}
}

// Shows: registration/automatic-acceptance-deniable
func TestAPersonMayDenyWhatWasAcceptedAutomatically(t *testing.T) {
	t.Parallel()
	const name = "trusted-denied"
	bootstrap := userClient(t, trustedUser, "system:bootstrappers:managedcluster")
	join(t, bootstrap, name)
	request(t, bootstrap, name, nil)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	accept(t, name, false)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "HubClusterAdminDenied")
	request(t, bootstrap, name, nil)
	suite.Consistently(t, time.Second, func() error { return equal(false, getCluster(t, name).Spec.HubAcceptsClient) })
}

func TestNoClusterIsAcceptedWithoutARequestThatVouchesForIt(t *testing.T) {
	t.Parallel()
	trusted := userClient(t, trustedUser, "system:bootstrappers:managedcluster")
	other := userClient(t, trustedUser+"x", "system:bootstrappers:managedcluster")
	serve := func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	relabel := func(r *certificatesv1.CertificateSigningRequest) {
		r.Labels[names.LabelClusterName] = "unvouched-forged"
	}
	cases := map[string]func(name string){
		"unvouched-alone":  func(name string) { join(t, trusted, name) },
		"unvouched-other":  func(name string) { join(t, other, name); request(t, other, name, nil) },
		"unvouched-forged": func(name string) { join(t, trusted, name); request(t, trusted, "unvouched-real", relabel) },
		"unvouched-usages": func(name string) { join(t, trusted, name); request(t, trusted, name, serve) },
		"unvouched-1":      func(name string) { join(t, trusted, name); request(t, trusted, "unvouched-10", nil) },
	}
	for name, in := range cases {
		in(name)
	}
	// What comes last is accepted, so all before it was looked at.
	join(t, trusted, "unvouched-last")
	request(t, trusted, "unvouched-last", nil)
	expectCondition(t, "unvouched-last", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
		"HubClusterAdminAccepted")
	suite.Consistently(t, time.Second, func() error {
		for name := range cases {
			if cluster := getCluster(t, name); cluster.Spec.HubAcceptsClient || cluster.Annotations[acceptedOn] != "" {
				return equal("not accepted", name+" is accepted")
			}
		}
		return nil
	})
}

// userClient is a client of some user.
func userClient(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	c := plane.As(t, user, groups...)
	return c
}

// join creates a ManagedCluster as an agent does that wants to join.
func join(t *testing.T, c client.Client, name string) {
	t.Helper()
	eventuallyCreate(t, c, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// request asks for the credential of a cluster.
func request(
	t *testing.T, c client.Client, cluster string, change func(*certificatesv1.CertificateSigningRequest),
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	asked, err := csr.ForCluster(cluster, "agent").Build(key)
	require.NoError(t, err)
	if change != nil {
		change(asked)
	}
	require.NoError(t, c.Create(t.Context(), asked))
	return asked
}

// relabelled has an administrator give a certificate request the label of another cluster. Its author stays the same.
func relabelled(
	t *testing.T, asked *certificatesv1.CertificateSigningRequest, cluster string,
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	patch(t, asked, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, names.LabelClusterName, cluster))
	return asked
}

// approveByHand approves a certificate request by hand.
func approveByHand(t *testing.T, asked *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	asked.Status.Conditions = append(asked.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand", Message: "By hand.",
	})
	asked.ResourceVersion = "" // the hub may comment on it at the same moment
	require.NoError(t, plane.Client.SubResource("approval").Update(t.Context(), asked))
}

// Shows: security/denial-remembered
func TestADeniedClusterCannotBecomeNewByItsDeletion(t *testing.T) {
	t.Parallel()
	const name = "denied-deleted"
	bootstrap := userClient(t, trustedUser, "system:bootstrappers:managedcluster")
	join(t, bootstrap, name)
	request(t, bootstrap, name, nil)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	accept(t, name, false)
	cluster := getCluster(t, name)
	require.NoError(t, plane.Client.Delete(t.Context(), cluster), "at once, so that the denial and the deletion are seen together")
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), &clusterv1.ManagedCluster{})
		return equal(true, apierrors.IsNotFound(err))
	})

	join(t, bootstrap, name)
	request(t, bootstrap, name, nil)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "HubClusterAdminDenied")
	assert.False(t, getCluster(t, name).Spec.HubAcceptsClient)

	accept(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	suite.Eventually(t, func() error {
		var namespace corev1.Namespace
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &namespace))
		return equal("", namespace.Annotations[names.AnnotationDeniedOn])
	})
}
