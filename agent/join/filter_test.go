package join

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: registration/own-requests-only
func TestOnlyOwnObjectsLeadToAPass(t *testing.T) {
	r := &Reconciler{Namespace: "agent", SecretName: names.SecretHub, Identity: csr.Identity{Cluster: "c1", Agent: "a1"}}
	for name, tc := range map[string]struct {
		namespace, name string
		own             bool
	}{
		"the credential":                  {"agent", names.SecretHub, true},
		"its pending key":                 {"agent", names.SecretHub + "-pending", true},
		"a Secret of an add-on":           {"agent", "hello-hub-kubeconfig", false},
		"the same name, elsewhere":        {"other", names.SecretHub, false},
		"the bootstrap kubeconfig is not": {"agent", names.SecretBootstrap, false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name}}
		assert.Equal(t, tc.own, r.ownSecret(secret), name)
	}
}
