package csr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const half = 512 << 10

// enlargements make a request of half a megabyte.
func enlargements() map[string]func(*certificatesv1.CertificateSigningRequest) {
	big := strings.Repeat("x", half)
	return map[string]func(*certificatesv1.CertificateSigningRequest){
		"a long spec.request": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = append(r.Spec.Request, big...)
		},
		"a long annotation": func(r *certificatesv1.CertificateSigningRequest) {
			r.Annotations = map[string]string{"a": big}
		},
		"many labels": func(r *certificatesv1.CertificateSigningRequest) {
			for n := range half / 128 {
				r.Labels[strings.Repeat("l", 50)+string(rune(n))] = strings.Repeat("v", 63)
			}
		},
		"a long value that is known of the requester": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{"a": {big}}
		},
		"many groups":     func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Groups = strings.Split(big, "xx") },
		"long finalizers": func(r *certificatesv1.CertificateSigningRequest) { r.Finalizers = []string{big} },
		"long owners": func(r *certificatesv1.CertificateSigningRequest) {
			r.OwnerReferences = []metav1.OwnerReference{{Name: big}}
		},
	}
}

// bytesOf is about what a cache holds of a request.
func bytesOf(t *testing.T, request *certificatesv1.CertificateSigningRequest) int {
	t.Helper()
	raw, err := request.Marshal()
	require.NoError(t, err)
	return len(raw)
}

// TestARequestOfHalfAMegabyteTakesLittleMemoryAndIsRefused trims as the caches do.
func TestARequestOfHalfAMegabyteTakesLittleMemoryAndIsRefused(t *testing.T) {
	for sentence, enlarge := range enlargements() {
		t.Run(sentence, func(t *testing.T) {
			user := csr.ClusterUser("c1", "a1")
			for _, trim := range []func(any) (any, error){csr.Trim, csr.TrimForAgent(""), csr.TrimForAgent(user)} {
				request := newRequest(t, csr.ForCluster("c1", "a1"), user)
				enlarge(request)
				assert.True(t, csr.TooLarge(request))
				assertNotApproved(t, csr.JudgeCluster(request, csr.Trust{}, false), csr.ReasonRequestTooLarge)
				_, err := trim(request)
				require.NoError(t, err)
				assert.Less(t, bytesOf(t, request), 4<<10)
				assert.Equal(t, "c1", request.Labels[names.LabelClusterName])
				assert.Equal(t, user, request.Spec.Username)
			}
			request := newRequest(t, csr.ForCluster("c1", "a1"), user)
			enlarge(request)
			_, err := csr.Trim(request)
			require.NoError(t, err)
			assert.True(t, csr.TooLarge(request))
			verdict := csr.JudgeCluster(request, trust(user), false)
			assertNotApproved(t, verdict, csr.ReasonRequestTooLarge)
			assert.Contains(t, verdict.Message, "spec.request may have 16384 bytes")
			request.Labels[names.LabelAddonName] = "hello"
			assertNotApproved(t, csr.JudgeAddon(request, nil), csr.ReasonRequestTooLarge)
		})
	}
}

// TestTheHubKeepsAllThatItWritesBack: approval and signing write the metadata of what the cache holds.
func TestTheHubKeepsAllThatItWritesBack(t *testing.T) {
	request := newRequest(t, csr.ForCluster("c1", "a1"), "user")
	request.Annotations, request.Finalizers = map[string]string{"a": "b"}, []string{"example.com/f"}
	request.Labels["theirs"] = "kept"
	request.Spec.Groups = []string{"system:authenticated"}
	request.Spec.Extra = map[string]certificatesv1.ExtraValue{"a": {"b"}}
	want := request.DeepCopy()
	request.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	_, err := csr.Trim(request)
	require.NoError(t, err)
	assert.Equal(t, want, request)
}

// TestAnAgentKeepsLittleOfTheRequestsOfOthers: what others ask for with the labels of its cluster only counts.
func TestAnAgentKeepsLittleOfTheRequestsOfOthers(t *testing.T) {
	own := csr.ClusterUser("c1", "a1")
	tests := map[string]struct {
		user, requester string
		kept            bool
	}{
		"its own request while it serves":                    {own, own, true},
		"not that of an agent of another cluster":            {own, csr.ClusterUser("c10", "a1"), false},
		"not that of the bootstrap user while it serves":     {own, bootstrapUser, false},
		"that of the bootstrap user while it joins, perhaps": {"", bootstrapUser, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			request := newRequest(t, csr.ForCluster("c1", "a1"), tc.requester)
			request.Status.Certificate = []byte("certificate")
			request.Annotations = map[string]string{"a": "b"}
			request.Spec.Groups = []string{"system:authenticated"}
			content := request.Spec.Request
			_, err := csr.TrimForAgent(tc.user)(request)
			require.NoError(t, err)
			assert.Equal(t, tc.requester, request.Spec.Username)
			assert.NotEmpty(t, request.Status.Certificate, "how far it has come is always known")
			assert.Empty(t, request.Spec.Groups)
			if tc.kept {
				assert.Equal(t, content, request.Spec.Request)
				assert.Equal(t, "certificate", string(request.Status.Certificate))
				assert.Empty(t, request.Annotations)
				return
			}
			assert.Empty(t, request.Spec.Request)
			assert.Less(t, bytesOf(t, request), 500)
		})
	}
}
