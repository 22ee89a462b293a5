package approval

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
)

func TestOnlyWhoCanBeTheAgentIsCommentedTo(t *testing.T) {
	for name, tc := range map[string]struct {
		addon     bool
		requester string
		want      bool
	}{
		"the agent of the cluster about itself":         {requester: csrs.ClusterUser("c1", "a"), want: true},
		"the agent of the cluster about an add-on":      {addon: true, requester: csrs.ClusterUser("c1", "a"), want: true},
		"a bootstrap user about a cluster":              {requester: bootstrap, want: true},
		"a bootstrap user about an add-on":              {addon: true, requester: bootstrap},
		"the agent of another cluster":                  {requester: csrs.ClusterUser("c2", "a")},
		"the agent of another cluster about an add-on":  {addon: true, requester: csrs.ClusterUser("c10", "a")},
		"the agent of an add-on about its own cluster":  {requester: csrs.AddonUser("c1", "hello", "a")},
		"the agent of an add-on about that very add-on": {addon: true, requester: csrs.AddonUser("c1", "hello", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			csr := requestFor(t, csrs.ForCluster("c1", "a"), tc.requester)
			if tc.addon {
				csr = addonRequest(t, kube(), tc.requester)
			}
			assert.Equal(t, tc.want, concernsRequester(csr))
		})
	}
}

func TestACommentFollowsTheNoteAndGoesWithTheApproval(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	r, w := newReconciler(t, csr)
	read := func() *certificatesv1.CertificateSigningRequest {
		var now certificatesv1.CertificateSigningRequest
		require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), &now))
		return &now
	}
	pass := func() {
		_, err := r.Reconcile(t.Context(), requestOf(csr))
		require.NoError(t, err)
	}
	pass()
	comment, found := csrs.CommentOn(read(), csrs.ConditionApprovedByHub)
	require.True(t, found)
	assert.Equal(t, approve.ReasonAwaitingApproval, comment.Reason)
	assert.Contains(t, comment.Message, "Waiting for a person")
	pass()
	assert.Equal(t, 1, w.sent["update approval"], "once")

	f, err := r.observe(t.Context(), csr.Name)
	require.NoError(t, err)
	for _, reason := range []string{"Other", approve.ReasonAwaitingApproval, "Other"} {
		f.csr = read()
		require.NoError(t, r.comment(t.Context(), f, &note{reason: reason, message: "m"}).Err())
		comment, _ = csrs.CommentOn(read(), csrs.ConditionApprovedByHub)
		assert.Equal(t, reason, comment.Reason, "also when it said so before")
	}

	r.Trust.Users = []string{"jane"}
	pass()
	now := read()
	require.Len(t, now.Status.Conditions, 1)
	assert.Equal(t, certificatesv1.CertificateApproved, now.Status.Conditions[0].Type)
}

func TestARequestWithACommentGoesAfterADay(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	plain := requestFor(t, csrs.ForCluster("c2", "a"), csrs.ClusterUser("c1", "a"))
	approved := withCondition(requestFor(t, csrs.ForCluster("c3", "a"), "jane"), certificatesv1.CertificateApproved)
	csrs.Comment{Kind: csrs.ConditionApprovedByHub, Reason: "R"}.Put(approved, now)
	all := []*certificatesv1.CertificateSigningRequest{csr, plain, approved}
	r, _ := newReconciler(t, csr, plain, approved)
	for _, at := range []time.Time{now, csr.CreationTimestamp.Add(24*time.Hour - time.Second), csr.CreationTimestamp.Add(24 * time.Hour)} {
		r.Clock = clocktesting.NewFakePassiveClock(at)
		for _, request := range all {
			_, err := r.Reconcile(t.Context(), requestOf(request))
			require.NoError(t, err)
		}
		gone := at.Sub(csr.CreationTimestamp.Time) >= 24*time.Hour
		for _, request := range all {
			err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(request), &certificatesv1.CertificateSigningRequest{})
			assert.Equal(t, gone && request == csr, apierrors.IsNotFound(err), "%s at %s", request.Name, at)
		}
	}
	result, err := r.Reconcile(t.Context(), requestOf(csr))
	require.NoError(t, err)
	assert.Zero(t, result)
}

func TestACommentIsAFreshObjectEachTime(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	r, w := newReconciler(t, csr)
	f, err := r.observe(t.Context(), csr.Name)
	require.NoError(t, err)
	before := f.csr.DeepCopy()
	w.failOn = "update approval"
	require.Error(t, r.comment(t.Context(), f, &note{reason: "R", message: "m"}).Err())
	assert.Equal(t, before, f.csr, "an object of the cache is never changed")
	assert.Equal(t, metav1.NewTime(now.Add(-10*time.Second)).Unix(), f.csr.CreationTimestamp.Unix())
}
