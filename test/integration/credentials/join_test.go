package credentials_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

func TestAClusterJoins(t *testing.T) {
	t.Parallel()
	m := newMember(t, "joins")
	stop := m.join(bootstrap)
	request := m.awaitRequests("", 1)[0]
	assert.Regexp(t, "^"+m.name+"-[0-9a-f]{10}$", request.Name)
	assert.Equal(t, m.name+"-", request.GenerateName)
	assert.Equal(t, map[string]string{names.LabelClusterName: m.name}, request.Labels)
	assert.Equal(t, certificatesv1.KubeAPIServerClientSignerName, request.Spec.SignerName)
	var mc clusterv1.ManagedCluster
	m.eventually(func() bool {
		return home.Client.Get(t.Context(), types.NamespacedName{Name: m.name}, &mc) == nil
	}, "the ManagedCluster")
	assert.False(t, mc.Spec.HubAcceptsClient)
	require.Len(t, m.pending(), 1, "the key waits in a Secret")
	require.Nil(t, m.secret(m.namespace, names.SecretHub))

	m.approve(request)
	credential := <-m.credentials
	secret := m.awaitSecret(m.namespace, names.SecretHub)
	stop()
	assert.Empty(t, secret.Labels)
	assert.Equal(t, []string{names.AnnotationIssuedAt}, slices.Collect(maps.Keys(secret.Annotations)),
		"nothing but our own note of when it was issued (docs/adr/0005)")
	assert.Equal(t, m.name, string(secret.Data["cluster-name"]))
	assert.Equal(t, "a1", string(secret.Data["agent-name"]))
	assert.True(t, m.server.Describes(secret.Data["kubeconfig"]))
	assert.Equal(t, credential.Pair, issue.PairOf(secret))
	assert.Empty(t, m.pending())
	assert.Len(t, m.requests(""), 1)

	m.tryCredential(credential)
	m.serveOwnCredential(credential)
}

// tryCredential shows that the credential is who it should be: without acceptance it may nothing.
func (m *member) tryCredential(credential join.Credential) {
	m.t.Helper()
	config, err := credential.RESTConfig()
	require.NoError(m.t, err)
	hub, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	require.NoError(m.t, err)
	var mc clusterv1.ManagedCluster
	err = hub.Get(m.t.Context(), types.NamespacedName{Name: m.name}, &mc)
	require.True(m.t, apierrors.IsForbidden(err), "before the acceptance: %v", err)
	m.accept()
	m.eventually(func() bool {
		return hub.Get(m.t.Context(), types.NamespacedName{Name: m.name}, &mc) == nil
	}, "after the acceptance the agent reads its ManagedCluster")
}

// serveOwnCredential shows that an agent that serves tells how its certificate is.
func (m *member) serveOwnCredential(credential join.Credential) {
	m.t.Helper()
	config, err := credential.RESTConfig()
	require.NoError(m.t, err)
	m.run(config, func(mgr ctrl.Manager, hub, _ cluster.Cluster) error {
		return (&join.Reconciler{
			Hub: hub, Agent: mgr, Namespace: m.namespace, Identity: m.identity(), Server: m.server,
		}).SetupWithManager(mgr)
	})
	var mc clusterv1.ManagedCluster
	m.eventually(func() bool {
		require.NoError(m.t, home.Client.Get(m.t.Context(), types.NamespacedName{Name: m.name}, &mc))
		return meta.IsStatusConditionTrue(mc.Status.Conditions, "ClusterCertificateRotated")
	}, "the condition ClusterCertificateRotated")
	told := meta.FindStatusCondition(mc.Status.Conditions, "ClusterCertificateRotated")
	assert.Equal(m.t, "ClientCertificateUpdated", told.Reason)
	assert.Contains(m.t, told.Message, "client certificate rotated starting from ")
	assert.Len(m.t, m.requests(""), 1, "a good certificate is not asked for again")
}

// Shows: registration/pending-key-resumed
func TestARestartedAgentResumesItsRequest(t *testing.T) {
	t.Parallel()
	m := newMember(t, "resumes")
	for range 3 {
		stop := m.join(bootstrap)
		m.awaitRequests("", 1)
		m.eventually(func() bool {
			pending := m.pending()
			return len(pending) == 1 && len(pending[0].Data["csr-uid"]) > 0
		}, "the request is noted with its key")
		stop()
	}
	request := m.requests("")
	require.Len(t, request, 1)
	m.approve(request[0])
	m.join(bootstrap)
	<-m.credentials
	assert.Len(t, m.requests(""), 1, "no second request in four lives of the agent")
	assert.Empty(t, m.pending())
}

func TestADeniedClusterAsksAgainAfterAPauseOnly(t *testing.T) {
	t.Parallel()
	m := newMember(t, "denied")
	m.join(bootstrap)
	request := m.awaitRequests("", 1)[0]
	m.decide(request, certificatesv1.CertificateDenied, "Stranger")
	before := m.hubRequests.Load()
	m.never(func() bool { return len(m.requests("")) > 1 }, "no busy loop of requests")
	assert.Less(t, m.hubRequests.Load()-before, int64(10))
	require.Nil(t, m.secret(m.namespace, names.SecretHub))
}

// Shows: registration/no-credential-without-cluster
func TestNoCredentialIsStoredBeforeTheManagedClusterExists(t *testing.T) {
	t.Parallel()
	m := newMember(t, "no-cluster")
	limited, err := home.User(m.name)
	require.NoError(t, err)
	m.grant(m.name, rbacv1.PolicyRule{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"},
		Verbs: []string{"create", "get", "list", "watch"},
	})
	m.join(limited)
	m.approve(m.awaitRequests("", 1)[0])
	m.eventually(func() bool {
		pending := m.pending()
		return len(pending) == 1 && len(pending[0].Data[csr.KeyCertificate]) > 0
	}, "the certificate is kept aside")
	require.Nil(t, m.secret(m.namespace, names.SecretHub))
	require.Empty(t, m.credentials)

	m.grant(m.name, rbacv1.PolicyRule{
		APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
		Verbs: []string{"create", "get"},
	})
	<-m.credentials
	m.awaitSecret(m.namespace, names.SecretHub)
	var mc clusterv1.ManagedCluster
	require.NoError(t, home.Client.Get(t.Context(), types.NamespacedName{Name: m.name}, &mc))
	assert.Len(t, m.requests(""), 1)
}

// grant gives a user a rule of its own.
func (m *member) grant(user string, rule rbacv1.PolicyRule) {
	m.t.Helper()
	name := user + "-" + rule.Resources[0]
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	require.NoError(m.t, home.Client.Create(m.t.Context(), role))
	require.NoError(m.t, home.Client.Create(m.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
}

func TestAStoredCredentialSurvivesADriftedKubeconfig(t *testing.T) {
	t.Parallel()
	m := newMember(t, "drifts")
	stop := m.join(bootstrap)
	m.approve(m.awaitRequests("", 1)[0])
	first := <-m.credentials
	stop()

	direct, err := client.New(home.agent, client.Options{Scheme: suite.Scheme()})
	require.NoError(t, err)
	moved := m.server
	moved.ProxyURL = "http://proxy.example.com:3128"
	again, verdict, err := join.Prepare(t.Context(), direct,
		types.NamespacedName{Namespace: m.namespace, Name: names.SecretHub},
		join.Facts{Server: moved, Identity: m.identity(), Now: first.RotateAt.Add(-1)})
	require.NoError(t, err)
	assert.True(t, verdict.Valid())
	assert.Equal(t, first.Pair, again.Pair)
	assert.True(t, moved.Describes(m.secret(m.namespace, names.SecretHub).Data["kubeconfig"]))
	assert.Len(t, m.requests(""), 1)
}

// Shows: registration/identity-drawn-once
func TestAnIdentityIsDrawnOnce(t *testing.T) {
	t.Parallel()
	m := newMember(t, "drawn")
	direct, err := client.New(home.agent, client.Options{Scheme: suite.Scheme()})
	require.NoError(t, err)
	identify := func(ctx context.Context) csr.Identity {
		id, err := join.Identify(ctx, direct,
			types.NamespacedName{Namespace: m.namespace, Name: names.SecretHub}, csr.Identity{})
		require.NoError(t, err)
		return id
	}
	first := identify(t.Context())
	assert.Equal(t, first, identify(t.Context()))
}
