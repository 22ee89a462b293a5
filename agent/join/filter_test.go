package join

import (
	"testing"

	"github.com/stretchr/testify/assert"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: registration/own-requests-only
func TestOnlyOwnObjectsLeadToAPass(t *testing.T) {
	r := &Reconciler{Namespace: "agent", SecretName: names.SecretHub, Identity: csr.Identity{Cluster: "c1", Agent: "a1"}}
	for name, tc := range map[string]struct {
		labels map[string]string
		own    bool
	}{
		"a request of this cluster":             {map[string]string{names.LabelClusterName: "c1"}, true},
		"one of another cluster":                {map[string]string{names.LabelClusterName: "c10"}, false},
		"one of an add-on of this cluster":      {map[string]string{names.LabelClusterName: "c1", names.LabelAddonName: "x"}, false},
		"one with an empty label for an add-on": {map[string]string{names.LabelClusterName: "c1", names.LabelAddonName: ""}, false},
		"one without labels":                    {nil, false},
	} {
		request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "c1-x", Labels: tc.labels}}
		assert.Equal(t, tc.own, r.ownRequest(request), name)
	}
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
