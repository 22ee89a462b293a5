package deploy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// An administrator who has not consented yet is no fault: as with every other role that nobody granted, the add-on
// looks again in half a minute at most, and no pass fails. On a large fleet each failure would be a line of the log.
func TestAMissingConsentIsWaitedForLikeAMissingGrant(t *testing.T) {
	f := factsOf()
	for what, refusal := range map[string]error{
		"a missing grant": apierrors.NewForbidden(
			schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, "b", nil),
		"a missing consent": &notConsentedError{role: "reader", account: f.account},
	} {
		outcome := outcomeOf(f, plan{}, results{bindings: []error{refusal}}, nil)
		assert.Equal(t, reconcile.ClassWaiting, outcome.Class(), what)
		require.NoError(t, outcome.Err(), what)
		assert.WithinRange(t, outcome.Wake(), f.now, f.now.Add(lastRetry+time.Second), what)
	}
}
