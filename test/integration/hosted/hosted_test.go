package hosted_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/hosted-agent, registration/hosted-namespaces
func TestAnAgentServesAClusterFromANamespaceOfTheHostingCluster(t *testing.T) {
	t.Parallel()
	k := newKlusterlet(t, "served", managed)
	k.start()
	k.awaitReadiness("--spoke-kubeconfig " + k.config.SpokeKubeconfig)
	k.give(k.identity())
	suite.Admit(t, host, k.cluster)
	k.awaitReadiness("serving")

	// What is the agent's own is on the hosting cluster.
	own := secret(t, host, k.cluster, names.SecretHub)
	require.NotNil(t, own)
	assert.NotEmpty(t, own.Data["tls.crt"])
	var leases coordinationv1.LeaseList
	require.NoError(t, host.Client.List(t.Context(), &leases, client.InNamespace(k.cluster)))
	held := map[string]bool{}
	for _, lease := range leases.Items {
		held[lease.Name] = true
	}
	for _, name := range []string{"klusterlet-agent-lock", "registration-agent-lock", "work-agent-lock"} {
		assert.True(t, held[name], "%s is among %v", name, held)
	}

	// What is reported and applied is of the managed cluster.
	claim := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: k.cluster}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "claimed"},
	}
	require.NoError(t, managed.Client.Create(t.Context(), claim))
	suite.Eventually(t, func() error {
		var found clusterv1.ManagedCluster
		require.NoError(t, host.Client.Get(t.Context(), client.ObjectKey{Name: k.cluster}, &found))
		if found.Status.Version.Kubernetes == "" ||
			!slices.Contains(found.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: k.cluster, Value: "claimed"}) {
			return fmt.Errorf("version and claims: %v", found.Status)
		}
		return nil
	})
	k.apply("one")
	var works workv1.AppliedManifestWorkList
	require.NoError(t, host.Client.List(t.Context(), &works))
	for _, record := range works.Items {
		assert.NotEqual(t, "one", record.Spec.ManifestWorkName, "nothing was applied to the hosting cluster")
	}

	t.Run("an add-on in default mode is on the managed cluster", func(t *testing.T) {
		k := k.in(t)
		k.enable("default", k.there, "")
		k.awaitCondition("default", "ClusterCertificateRotated", metav1.ConditionTrue, "")
		assert.NotNil(t, secret(t, managed, k.there, "default-hub-kubeconfig"))
		renew(t, managed, k.there, "default")
		k.awaitCondition("default", "Available", metav1.ConditionTrue, "")
	})
	t.Run("a hosted add-on is in the namespace of the agent", func(t *testing.T) {
		k := k.in(t)
		k.enable("guest", k.cluster, "hosting")
		k.awaitCondition("guest", "ClusterCertificateRotated", metav1.ConditionTrue, "")
		assert.NotNil(t, secret(t, host, k.cluster, "guest-hub-kubeconfig"))
		k.awaitCondition("guest", "Available", metav1.ConditionUnknown, `No lease found on hosting cluster "hosting"`)
		renew(t, host, k.cluster, "guest")
		k.awaitCondition("guest", "Available", metav1.ConditionTrue, "")
	})
	t.Run("a hosted add-on elsewhere is refused with the remedy", func(t *testing.T) {
		k := k.in(t)
		k.enable("stranger", "kube-system", "hosting")
		const why = "namespace kube-system of the add-on agent is on the hosting cluster, where the klusterlet serves add-ons only in "
		k.awaitCondition("stranger", "ClusterCertificateRotated", metav1.ConditionFalse, why+k.cluster)
		k.awaitCondition("stranger", "Available", metav1.ConditionUnknown, "name it in --hosted-addon-namespaces")
		assert.Nil(t, secret(t, host, "kube-system", "stranger-hub-kubeconfig"))
	})
	assert.Empty(t, k.lacks(), "the rights that are shipped suffice")
}

// Shows: registration/hosted-neighbours
func TestAgentsOnOneHostingClusterDoNotInterfere(t *testing.T) {
	t.Parallel()
	one := newKlusterlet(t, "neighbour", managed)
	two := newKlusterlet(t, "neighbour", host) // the hosting cluster itself
	for _, k := range []*klusterlet{one, two} {
		k.give(k.identity())
		k.start()
	}
	for _, k := range []*klusterlet{one, two} {
		suite.Admit(t, host, k.cluster)
		k.apply("same-name")
		k.enable("hello", k.cluster, "hosting")
		k.awaitCondition("hello", "ClusterCertificateRotated", metav1.ConditionTrue, "")
		renew(t, host, k.cluster, "hello")
		k.awaitCondition("hello", "Available", metav1.ConditionTrue, "")
	}
	assert.NotEqual(t, secret(t, host, one.cluster, "hello-hub-kubeconfig").Data["tls.crt"],
		secret(t, host, two.cluster, "hello-hub-kubeconfig").Data["tls.crt"])
	for _, name := range []string{names.SecretHub, names.SecretBootstrap, "hello-hub-kubeconfig"} {
		key := client.ObjectKey{Namespace: two.cluster, Name: name}
		assert.True(t, apierrors.IsForbidden(one.onHost().Get(t.Context(), key, &corev1.Secret{})),
			"one agent cannot read %s of another", name)
	}

	require.NoError(t, host.AddOns.DeleteAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: one.cluster, Name: "hello"},
	}))
	suite.Eventually(t, func() error {
		if secret(t, host, one.cluster, "hello-hub-kubeconfig") != nil {
			return fmt.Errorf("the credential of the add-on is still there")
		}
		return nil
	})
	assert.NotNil(t, secret(t, host, two.cluster, "hello-hub-kubeconfig"))
	one.Stop()
	two.apply("after")
	assert.Empty(t, append(one.lacks(), two.lacks()...), "the rights that are shipped suffice")
	assert.Zero(t, two.Log.Count("removed a secret that no add-on needs"), "nothing that is in use was removed")
}

// A managed cluster that does not answer is reported on the hub and by the agent, which goes on by itself when it
// answers.
// Shows: registration/hosted-unreachable
func TestAManagedClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := newKlusterlet(t, "silent", managed)
	k.link.Cut()
	k.give(k.identity())
	k.start()
	k.accept()
	k.awaitAvailable(metav1.ConditionFalse, "The kube-apiserver is not ok, status code: 0, ")
	k.awaitReadiness("managed cluster " + k.link.Host + " cannot be used since ")
	k.createWork("meanwhile")
	k.link.Mend()
	k.awaitAvailable(metav1.ConditionTrue, "")
	k.awaitApplied("meanwhile")
	k.enable("hello", k.there, "")
	k.awaitCondition("hello", "ClusterCertificateRotated", metav1.ConditionTrue, "")
	suite.Eventually(t, func() error {
		if body := k.readiness(); body != "serving" {
			return fmt.Errorf("readiness is %q", body)
		}
		return nil
	})

	before := k.Log.Count("the managed cluster cannot be used")
	k.link.Cut()
	k.awaitAvailable(metav1.ConditionFalse, "The kube-apiserver is not ok, status code: 0, ")
	suite.Eventually(t, suite.True("the log must say so", func() bool {
		return k.Log.Count("the managed cluster cannot be used") > before
	}))
	assert.Equal(t, before+1, k.Log.Count("the managed cluster cannot be used"), "one cause is one line")
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: k.cluster, Name: "managed-cluster-lease"}
	require.NoError(t, host.Client.Get(t.Context(), key, &lease))
	assert.WithinDuration(t, time.Now(), lease.Spec.RenewTime.Time, 2*time.Minute, "the hub still hears of the agent")
	k.link.Mend()
	k.awaitAvailable(metav1.ConditionTrue, "")
	k.apply("afterwards")
}

// A kubeconfig with a credential that the managed cluster does not accept is the fault of a person, who finds it on the
// hub and at the pod.
// Shows: registration/hosted-rejected
func TestAManagedClusterThatRejectsTheCredential(t *testing.T) {
	t.Parallel()
	k := newKlusterlet(t, "rejected", managed)
	wrong := rest.CopyConfig(k.identity())
	wrong.BearerToken += "x"
	k.give(wrong)
	k.start()
	k.accept()
	k.awaitReadiness("it answers 401 Unauthorized to the credential in --spoke-kubeconfig")
	k.awaitAvailable(metav1.ConditionFalse, "the credential of the agent is not accepted: it expired, was revoked, or is one of another cluster")
	k.createWork("one")

	k.give(k.identity())
	k.awaitAvailable(metav1.ConditionTrue, "")
	k.awaitApplied("one")
	suite.Eventually(t, func() error {
		if body := k.readiness(); body != "serving" {
			return fmt.Errorf("readiness is %q", body)
		}
		return nil
	})

	// The same, of a token that ends while the agent serves.
	passing, revoke := k.revocable()
	k.give(passing)
	k.apply("two")
	revoke()
	k.createWork("refused")
	k.awaitAvailable(metav1.ConditionFalse, "the credential of the agent is not accepted")
	k.give(k.identity())
	k.awaitAvailable(metav1.ConditionTrue, "")
	k.awaitApplied("refused")
}

// An agent that would serve add-ons in all namespaces of the hosting cluster and may not does not lose its cluster.
// Shows: registration/own-credential-alone
func TestTheOwnCredentialDoesNotDependOnTheSecretsOfAddOns(t *testing.T) {
	t.Parallel()
	k := newKlusterlet(t, "alone", managed)
	k.config.HostedAddonNamespaces = nil
	k.give(k.identity())
	k.start()
	suite.Admit(t, host, k.cluster)
	k.apply("one")
	before := secret(t, host, k.cluster, names.SecretHub)
	lost := before.DeepCopy()
	delete(lost.Data, "tls.crt")
	require.NoError(t, host.Client.Update(t.Context(), lost))
	suite.Eventually(t, func() error {
		now := secret(t, host, k.cluster, names.SecretHub)
		if crt := string(now.Data["tls.crt"]); crt == "" || crt == string(before.Data["tls.crt"]) {
			return fmt.Errorf("there is no other certificate yet")
		}
		return nil
	})
	assert.Positive(t, strings.Count(k.Log.String(), `cannot list resource \"secrets\"`)+k.Log.Count("secrets is forbidden"),
		"the log names the right that is missing")
	k.apply("two")
}
