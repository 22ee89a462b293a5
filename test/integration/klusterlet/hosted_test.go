package klusterlet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rendered "github.com/spokelet/spokelet/test/klusterlet"
)

// giveKubeconfig does what the operator does in hosted mode: it stores a kubeconfig of a ServiceAccount on the managed
// cluster in a Secret of the agents. Each call makes another token.
func (k *klusterlet) giveKubeconfig(secret, account string) {
	k.t.Helper()
	data, err := k.spoke.Kubeconfig(k.spoke.AccountConfig(k.t, k.there, account))
	require.NoError(k.t, err)
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: secret}, Data: map[string][]byte{"kubeconfig": data},
	}
	err = plane.Client.Create(k.t.Context(), object)
	if apierrors.IsAlreadyExists(err) {
		err = plane.Client.Update(k.t.Context(), object)
	}
	require.NoError(k.t, err)
}

// onHost reports whether the hosting cluster has an object.
func onHost(t *testing.T, o client.Object, key client.ObjectKey) bool {
	t.Helper()
	err := plane.Client.Get(t.Context(), key, o)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

// Shows: registration/hosted-klusterlet
func TestRegistrationAndWorkServeAManagedClusterElsewhere(t *testing.T) {
	k := prepare(t, "hosted", managed, rendered.Klusterlet{Hosted: true})
	registration, works := k.run(k.registration()), k.run(k.works())
	for _, p := range []*pod{registration, works} {
		p.awaitReadiness("config/kubeconfig: no such file or directory")
	}
	k.giveKubeconfig(rendered.SecretManagedRegistration, k.spec.RegistrationAccount())
	k.admit()
	works.awaitReadiness("config/kubeconfig: no such file or directory")
	k.giveKubeconfig(rendered.SecretManagedWork, k.spec.WorkAccount())
	k.work("one")
	k.awaitApplied("one")
	k.awaitClaim()
	k.registerAddon("helper")
	k.registerHosted("guest")
	for _, p := range []*pod{registration, works} {
		p.awaitReadiness("serving")
		_, body, err := p.get(t.Context(), "/readyz?verbose")
		require.NoError(t, err)
		assert.Contains(t, body, "[+]managed-cluster ok")
	}
	assert.Equal(t, map[string]string{
		"registration-agent-lock": registration.name, "work-agent-lock": works.name,
	}, k.holders(), "the Leases of the agents are where they run")
	assert.False(t, onHost(t, &corev1.Namespace{}, client.ObjectKey{Name: k.there}), "the hosting cluster has no works")
	var records workv1.AppliedManifestWorkList
	require.NoError(t, k.spoke.Client.List(t.Context(), &records))
	assert.True(t, slices.ContainsFunc(records.Items, func(a workv1.AppliedManifestWork) bool {
		return a.Spec.AgentID == k.spec.UID && a.Spec.ManifestWorkName == "one"
	}), "what was applied is recorded on the managed cluster")

	k.giveKubeconfig(rendered.SecretManagedRegistration, k.spec.RegistrationAccount())
	k.giveKubeconfig(rendered.SecretManagedWork, k.spec.WorkAccount())
	for _, p := range []*pod{registration, works} {
		k.eventually(func() bool { return strings.Contains(p.process.Log(), "the kubeconfig of the managed cluster changed") },
			"%s uses the new kubeconfig without a restart", p.name)
	}
	k.work("two")
	k.awaitApplied("two")
	k.registerAddon("another")
}

// Shows: registration/hosted-klusterlet
func TestOneProcessServesAManagedClusterElsewhere(t *testing.T) {
	k := prepare(t, "hosted-both", managed, rendered.Klusterlet{Hosted: true, Singleton: true})
	k.giveKubeconfig(rendered.SecretManagedAgent, k.spec.WorkAccount())
	p := k.run(k.both())
	k.admit()
	k.work("one")
	k.awaitApplied("one")
	k.registerAddon("helper")
	k.registerHosted("guest")
	p.awaitReadiness("serving")
	k.removed("one")
}
