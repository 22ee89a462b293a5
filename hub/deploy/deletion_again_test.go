package deploy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// failing is an agent of an author whose functions fail, as those that read from somewhere that is down.
type failing struct {
	permitted
	err error
}

func (f failing) Agent(context.Context, string) (addon.Agent, bool, error) { return f, true, nil }

func (f failing) Render(context.Context, addon.Request) (addon.Rendering, error) {
	return addon.Rendering{}, f.err
}

// asked counts how often a Configurer is asked.
type asked struct {
	addon.Configurer
	times  *int
	answer addon.Configuration
	err    error
}

func (a asked) Configure(context.Context, *addonv1beta1.ManagedClusterAddOn) (addon.Configuration, error) {
	*a.times++
	return a.answer, a.err
}

func leavingWorld(t *testing.T) *Reconciler {
	t.Helper()
	leaving := addOnAt("c1")
	leaving.DeletionTimestamp = new(metav1.NewTime(metav1.Unix(990, 0).Time))
	leaving.Finalizers = []string{finalizerHook}
	return formerWorld(t, interceptor.Funcs{}, leaving, ownNamespace("c1"), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
}

// soon reports whether a pass is repeated within a minute.
func soon(result ctrl.Result, err error) bool {
	return err != nil || result.Requeue || result.RequeueAfter > 0 && result.RequeueAfter <= time.Minute
}

// An add-on with a pre-delete hook is deleted while the functions of its author fail for a moment. The first pass writes
// the condition, whose event starts the second one; that one changes nothing.
func TestADeletionGoesOnAfterTheAgentFailedForAMoment(t *testing.T) {
	r := leavingWorld(t)
	r.Agents = failing{err: errors.New("connection refused")}
	var result ctrl.Result
	var err error
	for range 3 {
		result, err = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	}
	assert.True(t, soon(result, err), "the next pass is after %v", result.RequeueAfter)
	// So is one that stays.
	alive := formerWorld(t, interceptor.Funcs{}, addOnAt("c1"), ownNamespace("c1"), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	alive.Agents = failing{err: errors.New("connection refused")}
	for range 3 {
		result, err = alive.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	}
	require.True(t, soon(result, err))
}

// The same with a Configurer: an error of it, and when it asks to be asked again.
func TestADeletionAsksTheConfigurerAgain(t *testing.T) {
	for sentence, c := range map[string]asked{
		"it fails for a moment": {err: errors.New("the API server does not answer")},
		"a content cannot be stored": {answer: addon.Configuration{
			Err: &addon.NotReadyError{Message: "its content is unknown"}, Unstored: errors.New("exceeded quota"),
		}},
		"time alone changes it": {answer: addon.Configuration{
			Err: &addon.NotReadyError{Message: "waiting for the rollout"}, Recheck: time.Unix(1030, 0),
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := leavingWorld(t)
			times := 0
			c.times = &times
			r.Configurer, r.Agents = c, failing{}
			var result ctrl.Result
			var err error
			for range 3 {
				result, err = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			}
			require.Equal(t, 3, times)
			assert.True(t, soon(result, err), "the next pass is after %v", result.RequeueAfter)
		})
	}
}

// Nothing of ours is left to do: a finalizer of others keeps the add-on, or the last finalizers of ours go in this pass.
func TestADeletionThatNeedsNoAnswerIsQuiet(t *testing.T) {
	for finalizer, skipped := range map[string]bool{"example.com/others": false, finalizerHook: true} {
		t.Run(finalizer, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp = new(metav1.NewTime(metav1.Unix(900, 0).Time))
			leaving.Finalizers = []string{finalizer}
			if skipped { // as the condition tells people to do whose hook cannot run
				leaving.Annotations = map[string]string{
					names.AnnotationHookDeadline: "0s", names.AnnotationHookAfterDeadline: afterSkip,
				}
			}
			r := formerWorld(t, interceptor.Funcs{}, leaving, ownNamespace("c1"), &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			})
			r.Agents = failing{err: errors.New("the values of the author are broken")}
			for range 3 {
				result, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
				require.NoError(t, err)
				assert.Zero(t, result.RequeueAfter)
			}
		})
	}
}
