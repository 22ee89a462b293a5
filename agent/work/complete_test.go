package work

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// completable is a work with an object and a rule that tells when it is complete, as the cache of the hub has it.
func completable() *workv1.ManifestWork {
	w := workOf([]byte(configMap("a"))).work
	w.Namespace, w.ResourceVersion = "c1", "7"
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "ns", Name: "a"},
		ConditionRules: []workv1.ConditionRule{{
			Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestComplete, CelExpressions: []string{"true"},
		}},
	}}
	return w
}

// docs/reference/work.md: "a manifest that is complete is read and not written, also when its object is removed". The
// object is a Job that runs once: it completes, the status says so, and Kubernetes removes it seconds later
// (ttlSecondsAfterFinished). The hub is behind a slow link, so the cache does not show the status yet.
//
// Shows: work/complete
func TestWhatIsCompleteIsNotMadeAgainBehindASlowLink(t *testing.T) {
	for sentence, c := range map[string]struct {
		// takes is how long the status is on its way, later when the object is removed.
		takes, later time.Duration
		shown        bool
	}{
		"the cache shows the status (control)":        {takes: time.Second, later: 5 * time.Second, shown: true},
		"the status is on its way":                    {takes: 30 * time.Second, later: 5 * time.Second},
		"the hub has it, and its event is on its way": {takes: time.Second, later: 5 * time.Second},
		"the hub is away for an hour":                 {takes: time.Hour, later: 30 * time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := publishing(func(ctx context.Context, _ string) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(c.takes):
						return nil
					}
				})
				defer r.queues.works.ShutDown()
				r.mapper, r.store = mapper(), watch.NewStore(func(watch.Owner) {}, func() {})
				defer startPublisher(t, r)()
				pass := func(cached *workv1.ManifestWork) *facts {
					f := &facts{now: time.Now(), owner: watch.Owner{Name: "w"}, work: cached}
					f.applied = &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
					f.manifests = readBy(t, r, f)
					require.NoError(t, f.manifests[0].Err)
					require.True(t, f.manifests[0].Options.Completable())
					r.claim(f)
					return f
				}
				f := pass(completable())
				id := f.manifests[0].ID()
				r.store.Record(f.owner, id, watch.State{
					Applied:   watch.Applied{Desired: f.manifests[0].Desired, Owner: "owner"},
					Requested: time.Now(), Object: watch.Object{Exists: true, UID: "u", Version: "100"},
				})
				// The pass that sees that the object is complete.
				complete := metav1.Condition{
					Type: workv1.ManifestComplete, Status: metav1.ConditionTrue, Reason: "ConditionRuleEvaluated",
				}
				after := workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{
					Manifests: []workv1.ManifestCondition{{ResourceMeta: f.manifests[0].Meta(), Conditions: []metav1.Condition{complete}}},
				}}
				outcome := r.publishStatus(t.Context(), f, after)
				require.NoError(t, outcome.Err())
				if c.takes < hubTimeout {
					r.notes.change(f.owner, func(n *note) { n.work.version = "9" }) // what the hub answered
				}
				time.Sleep(c.later)
				synctest.Wait()
				// Its TTL is over.
				r.store.Observe(id, watch.Event{Deleted: true, Version: "101"})
				cached := completable()
				if c.shown {
					cached.ResourceVersion, cached.Status = "9", after
				}
				f = pass(cached)
				r.checkLag(f)
				require.NoError(t, r.recall(t.Context(), f)) // as Reconcile does
				require.False(t, f.stale, "the pass goes on")
				assert.False(t, f.copyKnowsMore(), "so a copy of before a new generation is not kept for it")
				p := planAll(r.input(f))
				assert.Equal(t, apply.Frozen, p.steps[0].Action, "%s: a Job that was done would run again", p.steps[0].Reason)
			})
		})
	}
}
