package hosted_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: security/kubeconfigs-read-no-files
func TestTheOwnerOfAManagedClusterCannotReadFilesOfTheAgentsPodNorStartProgramsInIt(t *testing.T) {
	t.Parallel()
	// The server of the owner, which waits for the token of the pod.
	var reached atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Store(true)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token, touched := filepath.Join(dir, "token"), filepath.Join(dir, "touched")
	require.NoError(t, os.WriteFile(token, []byte("token of the pod"), 0o600))
	for name, attack := range map[string]struct{ user, told string }{
		"the token of the pod": {
			fmt.Sprintf(`{"tokenFile": %q}`, token), fmt.Sprintf("user \"x\" has tokenFile %q: put the file into ", token),
		},
		"a program": {
			fmt.Sprintf(`{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [%q],
				"interactiveMode": "Never"}}`, touched),
			`user "x" has exec, which would run a program in the pod of the agent`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKlusterlet(t, "kubeconfig", managed)
			content := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x",
				"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
				"clusters": [{"name": "x", "cluster": {"server": %q}}],
				"users": [{"name": "x", "user": %s}]}`, server.URL, attack.user)
			require.NoError(t, os.WriteFile(k.config.SpokeKubeconfig, []byte(content), 0o600))
			k.start()
			k.awaitReadiness(attack.told)
			assert.False(t, reached.Load(), "the agent sent nothing to the server")
			assert.NoFileExists(t, touched)
			// A good one is used without a restart.
			k.give(k.identity())
			k.accept()
		})
	}
}

// Shows: security/bootstrap-secret-stays
func TestAnAddonCannotOverwriteTheBootstrapKubeconfigOfItsAgent(t *testing.T) {
	t.Parallel()
	k := newKlusterlet(t, "bootstrapped", managed)
	k.give(k.identity())
	k.start()
	k.accept()
	read := func() map[string][]byte {
		t.Helper()
		var found corev1.Secret
		key := client.ObjectKey{Namespace: k.cluster, Name: names.SecretBootstrap}
		require.NoError(t, host.Client.Get(t.Context(), key, &found))
		assert.Empty(t, found.Labels)
		return found.Data
	}
	before := read()
	k.enable("bootstrap", k.cluster, "hosting")
	k.awaitCondition("bootstrap", "ClusterCertificateRotated", metav1.ConditionFalse,
		"secret bootstrap-hub-kubeconfig is a credential of the klusterlet: give the add-on another name")
	assert.Equal(t, before, read())
	require.NoError(t, host.AddOns.DeleteAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.cluster, Name: "bootstrap"},
	}))
	suite.Eventually(t, func() error {
		_, err := host.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: k.cluster, Name: "bootstrap"})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the add-on is still there: %w", err)
	})
	assert.Equal(t, before, read())
}
