package csr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestKindsOfAlternativeNamesAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		tag  int
		want string
	}{
		"the first kind of RFC 5280":    {0, "other name"},
		"the last kind of RFC 5280":     {8, "registered ID"},
		"a kind that does not exist":    {9, "name of kind 9"},
		"a kind that cannot be encoded": {-1, "name of kind -1"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, generalName(tc.tag)) })
	}
}

func TestTheClockIsMentionedFromOneMinuteOn(t *testing.T) {
	good := &metav1.Condition{Message: "good"}
	for name, tc := range map[string]struct {
		ahead time.Duration
		want  string
	}{
		"just below a minute is not":          {time.Minute - 1, ""},
		"exactly a minute is":                 {time.Minute, "about 1m0s ahead of"},
		"two hours are told by the minute":    {2 * time.Hour, "about 2h0m0s ahead of"},
		"more than that is told by the hour":  {2*time.Hour + time.Minute, "about 2h0m0s ahead of"},
		"a clock that is behind is told, too": {-time.Minute, "about 1m0s behind"},
		"119 minutes are told by the minute":  {119 * time.Minute, "about 1h59m0s ahead of"},
	} {
		t.Run(name, func(t *testing.T) {
			got := WithClockNote(good, tc.ahead).Message
			if tc.want == "" {
				assert.Equal(t, "good", got)
				return
			}
			assert.Contains(t, got, tc.want)
		})
	}
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

func TestTheNameOfAPendingKey(t *testing.T) {
	addon, err := ForAddon("c1", "hello", kube("u", "g"))
	require.NoError(t, err)
	cluster := ForCluster("c1", "agent")
	for name, tc := range map[string]struct {
		want   Request
		secret string
		same   string
	}{
		"the default Secret of a cluster need not be named":    {cluster, "", "hub-kubeconfig-secret"},
		"the default Secret of an add-on need not be named":    {addon, "", "hub-kubeconfig-secret"},
		"another agent has another name for its cluster":       {cluster, "other", ""},
		"another agent has another name for the same add-on":   {addon, "other", ""},
		"a third agent has a name that is not of the second's": {addon, "third", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := PendingName(tc.want, tc.secret)
			if tc.same != "" {
				assert.Equal(t, PendingName(tc.want, tc.same), got)
				return
			}
			assert.NotEqual(t, PendingName(tc.want, ""), got)
			assert.NotEqual(t, PendingName(tc.want, "another"), got)
		})
	}
}

func TestPausesAfterRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt int
		want    time.Duration
	}{
		"the first is a minute":     {0, time.Minute},
		"the second is two":         {1, 2 * time.Minute},
		"the sixth is 32":           {5, 32 * time.Minute},
		"the seventh is an hour":    {6, time.Hour},
		"it is never more than one": {1000, time.Hour},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, pauseAfter(tc.attempt)) })
	}
}

func TestAnAttemptThatCannotBeReadIsTheFirst(t *testing.T) {
	for value, want := range map[string]int{"": 0, "3": 3, "0": 0, "-1": 0, "x": 0} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID("u")},
			Data:       map[string][]byte{KeyPrivateKey: []byte("key"), keyAttempt: []byte(value)},
		}
		assert.Equal(t, want, ReadPending(secret).Attempt, "attempt %q", value)
	}
	assert.Nil(t, ReadPending(&corev1.Secret{}))
	assert.Nil(t, ReadPending(nil))
}
