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
			request := newRequest(t, csr.ForCluster("c1", "a1"), user)
			enlarge(request)
			assert.True(t, csr.TooLarge(request))
			assertNotApproved(t, csr.JudgeCluster(request, csr.Trust{}, false), csr.ReasonRequestTooLarge)
			for range 2 { // a cache may trim an object twice
				_, err := csr.Trim(request)
				require.NoError(t, err)
			}
			assert.Less(t, bytesOf(t, request), 400)
			assert.Equal(t, "c1", request.Labels[names.LabelClusterName])
			assert.Equal(t, user, request.Spec.Username)
			assert.True(t, csr.TooLarge(request))
			verdict := csr.JudgeCluster(request, trust(user), false)
			assertNotApproved(t, verdict, csr.ReasonRequestTooLarge)
			assert.Contains(t, verdict.Message, "spec.request may have 4096 bytes")
			request.Labels[names.LabelAddonName] = "hello"
			assertNotApproved(t, csr.JudgeAddon(request, nil), csr.ReasonRequestTooLarge)
		})
	}
}

// TestTheHubKeepsOfARequestWhatIsJudged: what it is written back with is read from the API server first.
// Shows: security/requests-kept-small
func TestTheHubKeepsOfARequestWhatIsJudged(t *testing.T) {
	user := csr.ClusterUser("c1", "a1")
	request := newRequest(t, csr.ForCluster("c1", "a1"), user)
	request.Spec.Groups = []string{csr.ClusterGroup("c1")}
	want := request.DeepCopy()
	request.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	request.Annotations, request.Finalizers = map[string]string{"a": strings.Repeat("x", 4000)}, []string{"example.com/f"}
	request.OwnerReferences = []metav1.OwnerReference{{Name: "theirs"}}
	request.Labels["theirs"] = "dropped"
	request.Spec.Extra = map[string]certificatesv1.ExtraValue{"a": {strings.Repeat("x", 4000)}}
	request.Spec.UID = "uid"
	for range 2 {
		_, err := csr.Trim(request)
		require.NoError(t, err)
	}
	want.GenerateName = ""
	assert.Equal(t, want, request)
	assert.Less(t, bytesOf(t, request), 1500)
	assert.Equal(t, csr.DecisionReview, csr.JudgeCluster(request, csr.Trust{}, false).Decision)
}
