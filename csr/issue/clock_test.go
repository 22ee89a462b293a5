package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAWrongClockDoesNotShortenAPause(t *testing.T) {
	tests := map[string]struct {
		// ahead is by how much the clock of the agent is ahead of that of the hub, without knowing; since is how long ago the
		// key was made.
		ahead, since time.Duration
		given        func(i *issuing)
		step         Step
		wake         time.Duration // after now
	}{
		"an hour ahead, a denied request is answered after the pause": {
			ahead: time.Hour, given: func(i *issuing) { i.conditioned(certificatesv1.CertificateDenied, noon) },
			step: StepWait, wake: time.Minute,
		},
		"and the pause goes by": {
			ahead: time.Hour, since: time.Minute,
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateDenied, noon) }, step: StepStart,
		},
		"an hour behind, the pause is not an hour longer": {
			ahead: -time.Hour, given: func(i *issuing) { i.conditioned(certificatesv1.CertificateDenied, noon) },
			step: StepWait, wake: time.Minute,
		},
		"ahead by more than the lifetime, the certificate that just came leads to no request at once": {
			ahead: 25 * time.Hour, given: func(i *issuing) { i.issued(nil) }, step: StepWait, wake: time.Minute,
		},
		"of a key that was made later than now nothing is known": {
			ahead: 25 * time.Hour, since: -time.Hour,
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateDenied, noon) }, step: StepStart,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			i.standing.now = noon.Add(tc.ahead)
			i.standing.pending.madeAt = i.standing.now.Add(-tc.since)
			tc.given(i)
			got := decide(i.standing)
			assert.Equal(t, tc.step, got.Step)
			if tc.step == StepWait {
				assert.Equal(t, i.standing.now.Add(tc.wake), got.Wake)
			}
		})
	}
}

func TestRequestsThatVanishOneAfterTheOtherAreReplacedWithPauses(t *testing.T) {
	tests := map[string]struct {
		attempt int
		since   time.Duration
		step    Step
		next    int
	}{
		"the first is replaced at once":               {attempt: 0, step: StepStart, next: 1},
		"the second after a minute":                   {attempt: 1, step: StepWait},
		"which goes by":                               {attempt: 1, since: time.Minute, step: StepStart, next: 2},
		"later ones after longer pauses":              {attempt: 4, since: 7 * time.Minute, step: StepWait},
		"one that was cleaned up is replaced at once": {attempt: 9, since: 24 * time.Hour, step: StepStart, next: 9},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			i.standing.request = nil
			i.standing.pending.attempt, i.standing.pending.madeAt = tc.attempt, noon.Add(-tc.since)
			got := decide(i.standing)
			assert.Equal(t, tc.step, got.Step)
			assert.Equal(t, metav1.ConditionFalse, got.Condition.Status)
			if tc.step == StepStart {
				assert.Equal(t, tc.next, got.pending.attempt)
			}
		})
	}
}

// TestNoClockMakesAnAgentAskWithoutEnd lets an agent whose clock is wrong, and which does not know, get a certificate.
func TestNoClockMakesAnAgentAskWithoutEnd(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"a day ahead": 25 * time.Hour, "a year ahead": 365 * 24 * time.Hour, "a day behind": -25 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ahead = ahead
			for range 360 {
				w.refresh()
				_, err := w.pass()
				require.NoError(t, err)
				require.Less(t, len(w.created), 50, "after %s", w.now.Sub(noon))
				w.approve()
				w.now = w.now.Add(10 * time.Second)
			}
			assert.LessOrEqual(t, len(w.created), 7, "pauses of 1, 2, 4, 8, 16 and 32 minutes")
		})
	}
}

func TestTellClock(t *testing.T) {
	good := &metav1.Condition{Status: metav1.ConditionTrue, Message: "good"}
	for ahead, want := range map[time.Duration]string{
		0: "good", 59 * time.Second: "good", -59 * time.Second: "good",
		90 * time.Second:              "good; the clock of the agent is about 2m0s ahead of the clock of the hub: set it right",
		-25*time.Hour - 3*time.Minute: "good; the clock of the agent is about 25h0m0s behind the clock of the hub: set it right",
	} {
		assert.Equal(t, want, WithClockNote(good, ahead).Message)
	}
	assert.Equal(t, "good", good.Message)
	assert.Nil(t, WithClockNote(nil, time.Hour))
	for _, ahead := range []time.Duration{0, 59 * time.Second, -59 * time.Second} {
		assert.Zero(t, LookAtClock(ahead, noon, noon.Add(time.Minute)))
	}
	for _, ahead := range []time.Duration{time.Minute, -time.Minute, time.Hour} {
		assert.Equal(t, noon.Add(5*time.Minute), LookAtClock(ahead, noon, time.Time{}), "a user may have set it right")
	}
}

// What stands before the hub says for two minutes that it is 50 minutes earlier. In that time the certificate is due.
func TestTheClockOfTheAgentSaysWhenToLookAgain(t *testing.T) {
	const ahead = 50 * time.Minute
	for sentence, tc := range map[string]struct {
		ahead     time.Duration
		due, want time.Duration
	}{
		"when the clock of the agent shows that it is due":   {ahead, ahead + 28*time.Second, 28 * time.Second},
		"after that every few seconds":                       {ahead, ahead - time.Second, 15 * time.Second},
		"long before that every few minutes":                 {ahead, ahead + time.Hour, 5 * time.Minute},
		"an agent that is behind, by the clock of the hub":   {-ahead, time.Minute, 5 * time.Minute},
		"what is due by the clock of the hub is done anyway": {ahead, 0, 5 * time.Minute},
	} {
		assert.Equal(t, noon.Add(tc.want), LookAtClock(tc.ahead, noon, noon.Add(tc.due)), sentence)
	}
}

// TestWhatRemovesEachCredentialDoesNotMakeTheHubIssueOneAfterTheOther lets something delete the credential as soon as
// it is there.
func TestWhatRemovesEachCredentialDoesNotMakeTheHubIssueOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	w.user = "agent"
	waited := false
	for range 1200 {
		w.refresh()
		answer, err := w.pass()
		require.NoError(t, err)
		if answer.Step == StepWait && answer.Condition != nil {
			waited = true
			assert.Contains(t, answer.Condition.Message, "10 certificates were issued within 1m0s")
			assert.True(t, answer.Wake.After(w.now))
		}
		require.Less(t, len(w.created), 50, "after %s", w.now.Sub(noon))
		w.approve()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "credential"}}
		require.NoError(t, client.IgnoreNotFound(w.api.Delete(t.Context(), secret)))
		w.now = w.now.Add(100 * time.Millisecond)
	}
	assert.True(t, waited)
	assert.LessOrEqual(t, len(w.created), 30, "in two minutes")
	assert.Greater(t, len(w.created), 15, "it goes on")
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
