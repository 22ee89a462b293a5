package issue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
)

func TestTheCapHolds(t *testing.T) {
	w := newWorld(t)
	w.user = csr.ClusterUser("c1", "a1")
	for range 20 {
		w.refresh()
		_, err := w.pass()
		require.NoError(t, err)
		// A user throws the pending key away again and again.
		if pending := w.pendingSecret(); pending != nil {
			require.NoError(t, w.api.Delete(t.Context(), pending))
		}
	}
	assert.Len(t, w.created, MaxRequests)
	w.refresh()
	answer, err := w.pass()
	require.NoError(t, err)
	assert.Equal(t, "Stop creating csr since there are too many csr created already on hub", answer.Condition.Message)
	assert.ElementsMatch(t, w.created, answer.Awaited, "a decision about one of them needs the next pass")

	require.NoError(t, w.api.Delete(t.Context(), &w.requests()[0]))
	w.refresh()
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepStart, answer.Step, "one less on the hub lets one more be made")
}

func TestOnlyRequestsThatWaitCountAgainstTheCap(t *testing.T) {
	own := csr.ClusterUser("c1", "a1")
	by := func(user string) func(r *certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = user }
	}
	ended := func(as certificatesv1.RequestConditionType) func(r *certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) {
			by(own)(r)
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: as, Status: corev1.ConditionTrue}}
		}
	}
	tests := map[string]struct {
		// user is as whom the hub is asked, empty for a bootstrap credential.
		user   string
		change func(r *certificatesv1.CertificateSigningRequest)
		step   Step
	}{
		"ten of our own that wait are too many": {own, by(own), StepWait},
		"ten approved ones are none":            {own, ended(certificatesv1.CertificateApproved), StepStart},
		"ten denied ones are none":              {own, ended(certificatesv1.CertificateDenied), StepStart},
		"ten that the agent of another cluster made in our name are none": {
			own, by(csr.ClusterUser("c10", "a1")), StepStart,
		},
		"ten that an add-on made in our name are none":                   {own, by(csr.AddonUser("c1", "hello", "x")), StepStart},
		"ten that another agent of the cluster made are none":            {own, by(csr.ClusterUser("c1", "former")), StepStart},
		"ten that the bootstrap user of all clusters made are none":      {own, by("bootstrap"), StepStart},
		"while joining, ten of the user that we share make us wait":      {"", by("bootstrap"), StepReserve},
		"while joining, ten of a former agent of ours make us wait":      {"", by(csr.ClusterUser("c1", "former")), StepReserve},
		"while joining, ten of the agent of another cluster are none":    {"", by(csr.ClusterUser("c10", "a1")), StepStart},
		"while joining, ten that an add-on made in our name are none":    {"", by(csr.AddonUser("c1", "hello", "x")), StepStart},
		"while joining, ten approved ones of the user we share are none": {"", ended(certificatesv1.CertificateApproved), StepStart},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.user = tc.user
			for n := range MaxRequests {
				request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("c1-%d", n), Labels: wanted.Labels,
				}}
				tc.change(request)
				require.NoError(t, w.api.Create(t.Context(), request))
			}
			w.refresh()
			answer, err := w.pass()
			require.NoError(t, err)
			assert.Equal(t, tc.step, answer.Step)
		})
	}
}

// TestWhoSharesACredentialIsSlowedDownAndNeverBlocked joins while a user with the same bootstrap credential keeps
// creating requests with the labels of our cluster.
func TestWhoSharesACredentialIsSlowedDownAndNeverBlocked(t *testing.T) {
	w := newWorld(t)
	flood := 0
	more := func() {
		for range 2 * MaxRequests {
			flood++
			require.NoError(t, w.api.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c1-flood%d", flood), Labels: wanted.Labels},
				Spec:       certificatesv1.CertificateSigningRequestSpec{Username: "bootstrap"},
			}))
		}
		w.refresh()
	}
	more()
	answer, err := w.pass()
	require.NoError(t, err)
	require.Equal(t, StepReserve, answer.Step)
	require.Len(t, w.created, flood, "nothing is asked for yet")
	at := w.now.Add(time.Minute)
	for w.now.Before(at) {
		more()
		answer, err = w.pass()
		require.NoError(t, err)
		require.Equal(t, StepWait, answer.Step)
		assert.True(t, answer.Wake.Equal(at), "wakes at %s", answer.Wake)
		assert.Contains(t, answer.Condition.Message, "another one is created at "+at.UTC().Format(time.RFC3339))
		w.now = w.now.Add(20 * time.Second)
	}
	more()
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepCreate, answer.Step)
	assert.Len(t, w.created, flood+1)
	more()
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepWait, answer.Step, "and no other one is made")
	assert.Len(t, w.created, flood+1)
}

func TestAClockThatIsSetBackDoesNotHoldAKeyBack(t *testing.T) {
	i := newIssuing(t)
	i.standing.request, i.standing.pending.requestUID = nil, ""
	i.standing.open, i.standing.shared, i.standing.pending.madeAt = MaxRequests, true, noon.Add(24*time.Hour)
	assert.Equal(t, StepCreate, decide(i.standing).Step)
}

// TestAFloodOfRequestsCostsAnAgentFewPages: with requests of strangers that fill all pages that are read, an agent that
// serves is slowed down and not stopped.
// Shows: security/own-request-only
func TestAFloodOfRequestsCostsAnAgentFewPages(t *testing.T) {
	w := newWorld(t)
	w.user = csr.ClusterUser("c1", "a1")
	for n := range maxPages*pageSize + 1 {
		require.NoError(t, w.api.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c1-flood%04d", n), Labels: wanted.Labels},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Username: csr.ClusterUser("c10", "a1")},
		}))
	}
	w.refresh()
	w.paged = true
	answer, err := w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepReserve, answer.Step)
	assert.Equal(t, maxPages, w.reads)
	w.paged = false
	w.refresh()
	w.paged = true
	w.now = w.now.Add(time.Minute)
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepCreate, answer.Step)
}
