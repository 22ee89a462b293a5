package approve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"

	"github.com/spokelet/spokelet/csr"
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
			assert.True(t, TooLarge(request))
			assertNotApproved(t, JudgeCluster(request, Trust{}, false), ReasonRequestTooLarge)
			for range 2 { // a cache may trim an object twice
				_, err := Trim(request)
				require.NoError(t, err)
			}
			assert.Less(t, bytesOf(t, request), 400)
			assert.Equal(t, "c1", request.Labels[names.LabelClusterName])
			assert.Equal(t, user, request.Spec.Username)
			assert.True(t, TooLarge(request))
			verdict := JudgeCluster(request, trust(user), false)
			assertNotApproved(t, verdict, ReasonRequestTooLarge)
			assert.Contains(t, verdict.Message, "spec.request may have 4096 bytes")
			request.Labels[names.LabelAddonName] = "hello"
			assertNotApproved(t, JudgeAddon(request, nil), ReasonRequestTooLarge)
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
		_, err := Trim(request)
		require.NoError(t, err)
	}
	want.GenerateName = ""
	assert.Equal(t, want, request)
	assert.Less(t, bytesOf(t, request), 1500)
	assert.Equal(t, DecisionReview, JudgeCluster(request, Trust{}, false).Decision)
}

func TestTheSizeOfARequestCountsEveryPart(t *testing.T) {
	const entry = perEntry
	for name, tc := range map[string]struct {
		object certificatesv1.CertificateSigningRequest
		want   int
	}{
		"nothing": {},
		"a label": {certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"ab": "cde"}}}, entry + 5},
		"an annotation": {certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"ab": "cde"}}}, entry + 5},
		"a finalizer": {certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"abc"}}}, entry + 3},
		"an owner": {certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "abcd", UID: "12345"}}}},
			entry + 2 + 3 + 4 + 5},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, sizeOfMeta(&tc.object.ObjectMeta)) })
	}
	spec := certificatesv1.CertificateSigningRequestSpec{
		Username: "abc", UID: "1234", Groups: []string{"g1", "g23"},
		Extra: map[string]certificatesv1.ExtraValue{"key": {"v1", "v23"}},
	}
	assert.Equal(t, 3+4+(entry+2)+(entry+3)+(entry+3)+(entry+2)+(entry+3), sizeOfRequester(&spec))
}

func TestARequestIsTooLargeBeyondTheLimitOnly(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	of := func(request int, annotation, user string) *certificatesv1.CertificateSigningRequest {
		c := &certificatesv1.CertificateSigningRequest{}
		c.Spec.Request, c.Spec.Username = []byte(text(request)), user
		if annotation != "" {
			c.Annotations = map[string]string{"a": annotation}
		}
		return c
	}
	for name, tc := range map[string]struct {
		object *certificatesv1.CertificateSigningRequest
		want   bool
	}{
		"a request of the largest size":       {of(MaxRequestBytes, "", ""), false},
		"a request of one byte more":          {of(MaxRequestBytes+1, "", ""), true},
		"metadata of the largest size":        {of(1, text(maxOtherBytes-perEntry-1), ""), false},
		"metadata of one byte more":           {of(1, text(maxOtherBytes-perEntry), ""), true},
		"a requester of the largest size":     {of(1, "", text(maxOtherBytes)), false},
		"a requester of one byte more":        {of(1, "", text(maxOtherBytes+1)), true},
		"all of them with their largest size": {of(MaxRequestBytes, text(maxOtherBytes-perEntry-1), text(maxOtherBytes)), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, TooLarge(tc.object)) })
	}
}

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
