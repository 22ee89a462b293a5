package executor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noon is the instant of the passes of these tests.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// Shows: work/executor-access-review
func TestDecide(t *testing.T) {
	all := func(allowed bool) []review {
		return []review{{verb: "create", allowed: allowed}, {verb: "get", allowed: allowed}}
	}
	const text = "not allowed to apply the resource  configmaps, app x, will try again in 1m0s; " +
		"system:serviceaccount:ns:deployer lacks "
	const unreadable = "system:serviceaccount:ns:deployer is not allowed to get configmaps app/x"
	for name, c := range map[string]struct {
		reviews      []review
		verdict      Verdict
		lacks        []string
		err, readErr string
	}{
		"all verbs are allowed": {reviews: all(true), verdict: Allowed},
		"no verb is allowed": {
			reviews: all(false), verdict: Denied, lacks: []string{"create", "get"}, err: text + "create, get", readErr: unreadable,
		},
		"only reading is allowed": {
			reviews: []review{{verb: "create"}, {verb: "get", allowed: true}},
			verdict: Denied, lacks: []string{"create"}, err: text + "create",
		},
		"only reading is asked for and denied": {
			reviews: []review{{verb: "get"}}, verdict: Denied, lacks: []string{"get"}, err: text + "get", readErr: unreadable,
		},
		"a denied verb counts although another review failed": {
			reviews: []review{{verb: "create"}, {verb: "get", err: assert.AnError}},
			verdict: Denied, lacks: []string{"create"}, err: text + "create", readErr: assert.AnError.Error(),
		},
		"without a denied verb a failed review leaves the decision unknown": {
			reviews: []review{{verb: "create", err: assert.AnError}, {verb: "get", allowed: true}},
			verdict: Unknown, err: assert.AnError.Error(), readErr: assert.AnError.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(deployer, configMap("x", VerbsOwn), c.reviews, noon)
			assert.Equal(t, c.verdict, got.Verdict)
			assert.Equal(t, c.lacks, got.Lacks)
			assert.Equal(t, c.err, textOf(got.Err))
			assert.Equal(t, c.readErr, textOf(got.ReadErr))
			assert.False(t, got.EscalationChecked)
		})
	}
}

// Shows: work/executor-certificates
func TestNoCertificateIsRequestedForAnExecutor(t *testing.T) {
	q := configMap("x", VerbsOwn)
	q.Object.Group, q.Object.Resource = "certificates.k8s.io", "certificatesigningrequests"
	allowed := []review{{verb: "create", allowed: true}, {verb: "get", allowed: true}}
	got := decide(deployer, q, allowed, noon)
	assert.Equal(t, Denied, got.Verdict)
	require.ErrorContains(t, got.Err, "would issue the certificate to the agent")
	require.NoError(t, got.ReadErr)
	denied := []review{{verb: "create", allowed: true}, {verb: "get"}}
	require.ErrorContains(t, decide(deployer, q, denied, noon).ReadErr, "is not allowed to get")
	unknown := []review{{verb: "create", allowed: true}, {verb: "get", err: errors.New("no answer")}}
	require.ErrorContains(t, decide(deployer, q, unknown, noon).ReadErr, "no answer")
	q.Verbs = VerbsRead
	assert.Equal(t, Allowed, decide(deployer, q, allowed[1:], noon).Verdict, "to read one is harmless")
}

// textOf is the message of an error, empty for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestTheErrorOfAnEscalation(t *testing.T) {
	d := escalationDenied(roleBinding(), "because", noon)
	assert.Equal(t, Denied, d.Verdict)
	require.EqualError(t, d.Err, "not allowed to apply the resource rbac.authorization.k8s.io rolebindings, app x, "+
		"error: permission escalation, will try again in 1m0s; because")
	require.NoError(t, d.ReadErr, "the object may be read")
	assert.Equal(t, noon.Add(time.Minute), d.again(true, roleBinding().Object))
}

func TestHowLongADecisionIsValid(t *testing.T) {
	o := configMap("x", VerbsOwn).Object
	for name, c := range map[string]struct {
		decision Decision
		// again is when the question is asked again by itself, after the review; zero is never.
		again time.Duration
		// until is how long the decision is valid.
		until time.Duration
	}{
		"allowed: not asked again by itself": {until: allowedTTL},
		"denied: asked again after a minute": {
			decision: Decision{Err: assert.AnError}, again: time.Minute, until: time.Minute,
		},
		"reading denied: asked again after a minute": {
			decision: Decision{ReadErr: assert.AnError}, again: time.Minute, until: time.Minute,
		},
		"right after a change of RBAC the review may be outdated": {
			decision: Decision{changed: noon.Add(-10 * time.Millisecond)}, again: firstReview, until: firstReview,
		},
		"some time after a change of RBAC the question is asked once more": {
			decision: Decision{changed: noon.Add(-500 * time.Millisecond)},
			again:    1500 * time.Millisecond, until: 1500 * time.Millisecond,
		},
		"just within the lag of the authorizer": {
			decision: Decision{changed: noon.Add(-authorizerLag + 1)},
			again:    3 * (authorizerLag - 1), until: 3 * (authorizerLag - 1),
		},
		"long after a change of RBAC the decision is final": {
			decision: Decision{changed: noon.Add(-authorizerLag)}, until: allowedTTL,
		},
		"denied right after a change of RBAC: the earlier of both": {
			decision: Decision{Err: assert.AnError, changed: noon}, again: firstReview, until: firstReview,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.decision.reviewed = noon
			want := time.Time{}
			if c.again > 0 {
				want = noon.Add(c.again)
			}
			assert.Equal(t, want, c.decision.again(true, o))
			assert.True(t, c.decision.valid(noon.Add(c.until-1), true, o))
			assert.False(t, c.decision.valid(noon.Add(c.until), true, o))
		})
	}
	unwatched := Decision{reviewed: noon}
	again := unwatched.again(false, o)
	assert.False(t, again.Before(noon.Add(allowedTTL)), "while RBAC is not watched, allowed is asked again by itself")
	assert.False(t, again.After(noon.Add(allowedTTL*3/2)))
}
