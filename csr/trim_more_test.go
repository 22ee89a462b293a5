package csr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Everybody who may create a request may annotate it: no annotation of the API server may keep an object in full.
func TestNobodyKeepsARequestInFullByTheMarkOfAStub(t *testing.T) {
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: "r", Annotations: map[string]string{annotationStub: "1", "more": strings.Repeat("x", 200<<10)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte(strings.Repeat("x", 1<<20))},
	}
	out, err := Trim(request)
	require.NoError(t, err)
	kept, ok := out.(*certificatesv1.CertificateSigningRequest)
	require.True(t, ok)
	assert.LessOrEqual(t, len(kept.Spec.Request), MaxRequestBytes)
	assert.Empty(t, kept.Annotations["more"])
	assert.Empty(t, kept.ManagedFields)
}
