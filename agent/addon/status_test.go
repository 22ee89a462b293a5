package addon

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func TestConclude(t *testing.T) {
	good := issue.Rotated(issue.PairVerdict{NotBefore: noon, NotAfter: noon.Add(time.Hour)})
	bad := issue.NotStored("because")
	const kind = csr.ConditionRotated
	tests := map[string]struct {
		results []result
		change  func(p *plan)
		want    metav1.ConditionStatus // empty: left alone
		message string
	}{
		"one good": {results: []result{{kind: kind, condition: good}}, want: metav1.ConditionTrue, message: good.Message},
		"one bad keeps the words of OCM": {
			results: []result{{kind: kind, condition: bad, signer: "s"}}, want: metav1.ConditionFalse,
			message: "Failed to rotated client certificate because",
		},
		"one that waits is not told": {results: []result{{kind: kind}}},
		"the worst of several wins and is named": {
			results: []result{
				{kind: kind, condition: good, signer: "a"}, {kind: kind, condition: bad, signer: "b"}, {kind: kind, signer: "c"},
			},
			want: metav1.ConditionFalse, message: "Failed to rotated client certificate because (signer b)",
		},
		"one that waits keeps the good news back": {results: []result{{kind: kind, condition: good}, {kind: kind}}},
		"so does one for which the hub must move": {
			results: []result{{kind: kind, condition: good}}, change: func(p *plan) { p.waits = true },
		},
		"one that cannot be served is told": {
			results: []result{{kind: kind, condition: good, signer: "a"}},
			change:  func(p *plan) { p.refused = []result{{kind: kind, condition: bad}} },
			want:    metav1.ConditionFalse, message: "Failed to rotated client certificate because",
		},
		"no registration, nothing to tell": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan{remove: removeStale}
			if tc.change != nil {
				tc.change(&p)
			}
			after := conclude(addonWith(), p, tc.results)
			if tc.want == "" {
				assert.Empty(t, after.Status.Conditions)
				return
			}
			require.Len(t, after.Status.Conditions, 1)
			assert.Equal(t, "ClusterCertificateRotated", after.Status.Conditions[0].Type)
			assert.Equal(t, tc.want, after.Status.Conditions[0].Status)
			assert.Equal(t, tc.message, after.Status.Conditions[0].Message)
		})
	}
}

func TestConcludeDeclaresTheDriverAndClearsWhatIsOver(t *testing.T) {
	f := addonWith(customSigner("example.com/s"), addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient},
		hubClient("token", "u"))
	after := conclude(f, decide(f), nil)
	assert.Nil(t, after.Status.Registrations[0].KubeClient)
	assert.Equal(t, "csr", after.Status.Registrations[1].KubeClient.Driver)
	assert.Equal(t, "csr", after.Status.Registrations[2].KubeClient.Driver)
	assert.Equal(t, "token", f.addon.Status.Registrations[2].KubeClient.Driver, "the cached object is left alone")

	over := addonWith()
	over.addon.Status.Conditions = []metav1.Condition{{Type: "ClusterCertificateRotated"}, {Type: "Other"}}
	cleared := conclude(over, plan{remove: removeAll}, nil)
	require.Len(t, cleared.Status.Conditions, 1)
	assert.Equal(t, "Other", cleared.Status.Conditions[0].Type)
}

func TestFailedResultsAreNotServed(t *testing.T) {
	good := result{kind: csr.ConditionRotated, condition: issue.Rotated(issue.PairVerdict{}), served: true}
	assert.Equal(t, good, good.failed(nil))
	failed := good.failed(errors.New("disk full"))
	assert.False(t, failed.served)
	assert.Contains(t, failed.condition.Message, "disk full")
	assert.Equal(t, reconcile.ClassRetry, failed.outcome.Class())
}

func TestAnObsoleteSecretThatStaysIsTold(t *testing.T) {
	f := addonWith(hubClient("csr", "u", "g"))
	p := decide(f)
	f.secrets = []ownedSecret{
		{side: sideAgent, key: p.serve[0].secret},
		{side: sideAgent, key: types.NamespacedName{Namespace: "ns", Name: "hello-old-client-cert"}},
		{side: sideAgent, key: types.NamespacedName{Namespace: "agent", Name: "x-pending"}, pending: true},
	}
	message := func(res result, p plan) string {
		after := conclude(f, p, []result{res})
		return meta.FindStatusCondition(after.Status.Conditions, csr.ConditionRotated).Message
	}
	denied := newResult(p.serve[0]).withFailure("the request was denied")
	assert.Equal(t, "Failed to rotated client certificate the request was denied; secret ns/hello-old-client-cert of an "+
		"earlier registration stays until all new credentials are there", message(denied, p))
	good := newResult(p.serve[0])
	good.condition = &metav1.Condition{Type: csr.ConditionRotated, Status: metav1.ConditionTrue, Message: "good"}
	assert.Equal(t, "good", message(good, p))
	p.remove = removeNone
	assert.NotContains(t, message(denied, p), "earlier registration", "nothing is to go")
}
