package deploy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// failedWork is the work of a hook whose Job failed.
func failedWork(t *testing.T, uid string) *workv1.ManifestWork {
	t.Helper()
	work := hookWork(t, "False")
	work.UID = "hook-uid"
	if uid != "" {
		work.UID = "other"
	}
	values := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks
	yes, why := "True", "backoff limit"
	values.Values = append(values.Values,
		workv1.FeedbackValue{Name: "HookFailed", Value: workv1.FieldValue{Type: workv1.String, String: &yes}},
		workv1.FeedbackValue{Name: "HookMessage", Value: workv1.FieldValue{Type: workv1.String, String: &why}})
	return work
}

// Shows: hub/hook-retried
func TestFailedHooks(t *testing.T) {
	record := func(count int, ago time.Duration) string {
		return encodeRecord(map[works.Side]attempts{works.Managed: {
			Count: count, Work: "hook-uid", Failed: time.Unix(1000, 0).Add(-ago).UTC(),
		}})
	}
	tests := map[string]struct {
		attempts string
		change   func(f *deletionFacts)
		records  int
		deletes  bool
		wake     time.Duration
		reason   string
		says     string
		gone     bool
	}{
		"a failure is recorded first": {
			records: 1, wake: 30 * time.Second, reason: reasonHookFailed,
			says: "failed, attempt 1 of 5 (ManifestWork c1/addon-a-pre-delete): Job ns/clean failed: backoff limit. The next attempt",
		},
		"and counted once": {attempts: record(1, 10*time.Second), wake: 20 * time.Second, reason: reasonHookFailed, says: "attempt 1 of 5"},
		"after its pause the work is deleted": {
			attempts: record(1, 30*time.Second), deletes: true, wake: 59 * time.Minute, reason: reasonHookFailed, says: "tried again",
		},
		"the pause doubles":            {attempts: record(2, 30*time.Second), wake: 30 * time.Second, reason: reasonHookFailed},
		"up to five minutes":           {attempts: record(4, 0), wake: 4 * time.Minute, reason: reasonHookFailed},
		"the last attempt is one":      {attempts: record(5, 0), wake: 59 * time.Minute, reason: reasonHookFailed, says: "It is not tried again."},
		"a record that cannot be read": {attempts: "x", records: 1, wake: 30 * time.Second, reason: reasonHookFailed, says: "attempt 1 of 5"},
		"after the deadline nothing more": {
			attempts: record(1, time.Hour), reason: reasonHookDeadline, says: "The deadline of 30s after the deletion has passed",
			change: func(f *deletionFacts) { f.addOn.Annotations[names.AnnotationHookDeadline] = "30s" },
		},
		"the next attempt that fails is counted as well": {
			attempts: strings.ReplaceAll(record(3, time.Hour), "hook-uid", "earlier"), records: 4, wake: 4 * time.Minute,
			reason: reasonHookFailed, says: "attempt 4 of 5",
		},
		"without a deadline only the next attempt is waited for": {
			attempts: record(5, 0), reason: reasonHookFailed,
			change: func(f *deletionFacts) { f.addOn.Annotations[names.AnnotationHookDeadline] = "none" },
		},
		"a deadline that is none": {
			attempts: record(5, 0), wake: 59 * time.Minute, reason: reasonHookFailed, says: "=soon of the add-on is no duration",
			change: func(f *deletionFacts) { f.addOn.Annotations[names.AnnotationHookDeadline] = "soon" },
		},
		"a work that is being deleted is waited for": {
			attempts: record(1, time.Minute), wake: 59 * time.Minute, reason: reasonWaitingForHook, says: "is being deleted, and made again",
			change: func(f *deletionFacts) { f.works[0].DeletionTimestamp = &metav1.Time{Time: f.now} },
		},
		"a person may do without the hook": {
			attempts: record(1, 0), gone: true,
			change: func(f *deletionFacts) {
				f.addOn.Annotations[names.AnnotationHookDeadline] = "0s"
				f.addOn.Annotations[names.AnnotationHookAfterDeadline] = "Skip"
			},
		},
		"so may its author": {
			attempts: record(1, 0), gone: true,
			change: func(f *deletionFacts) {
				job := hookJob()
				job.SetAnnotations(map[string]string{
					names.AnnotationPreDelete: "", names.AnnotationHookDeadline: "10s", names.AnnotationHookAfterDeadline: "Skip",
				})
				d, err := works.Divide(append(f.rendering.Objects[:0:0], job), false)
				require.NoError(t, err)
				f.works[0].Spec = works.HookWork(setOf(f.facts, works.Managed, works.PreDelete), d.Hooks[works.Managed]).Spec
			},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := leavingFacts(finalizerHook)
			f.addOn.Annotations = map[string]string{}
			if test.attempts != "" {
				f.addOn.Annotations[names.AnnotationHookAttempts] = test.attempts
			}
			f.works = []*workv1.ManifestWork{failedWork(t, "")}
			f.rendering.Objects = append(f.rendering.Objects, hookJob())
			if test.change != nil {
				test.change(&f)
			}
			p := decideDeletion(f)
			assert.Equal(t, test.gone, len(p.drop) > 0)
			assert.Equal(t, test.gone, p.skipped)
			if test.gone {
				return
			}
			recorded := recordOf(map[string]string{names.AnnotationHookAttempts: p.attempts})[works.Managed]
			assert.Equal(t, test.records, recorded.Count)
			assert.Equal(t, test.records > 0, len(p.failures) > 0)
			assert.Equal(t, test.deletes, len(removed(p)) > 0)
			assert.False(t, test.records > 0 && test.deletes, "a failure is recorded before its work is deleted")
			if test.wake == 0 {
				assert.Zero(t, p.wake)
			} else {
				assert.Equal(t, f.now.Add(test.wake), p.wake.Local())
			}
			c := meta.FindStatusCondition(p.conditions, names.ConditionAddOnDeleting)
			require.NotNil(t, c)
			assert.Equal(t, test.reason, c.Reason)
			assert.Contains(t, c.Message, test.says)
		})
	}
}

func TestDeployWorksAreKeptWhileAHookRuns(t *testing.T) {
	f := leavingFacts(finalizerHook)
	f.facts, _ = simulate(t, f.facts)
	require.NotEmpty(t, f.works)
	f.rendering.Objects = append(f.rendering.Objects, configMap("more", 1), hookJob())
	patched := func(p deletionPlan) []string {
		var all []string
		for _, s := range p.works {
			if s.Verb == reconcile.Patch {
				all = append(all, s.After.Name)
			}
		}
		return all
	}
	assert.Equal(t, []string{"addon-a-deploy-0"}, patched(decideDeletion(f)))
	for name, change := range map[string]func(*deletionFacts){
		"not what is unknown":            func(f *deletionFacts) { f.renderErr = errors.New("unknown") },
		"not with an unknown probe":      func(f *deletionFacts) { f.setupErr = errors.New("unknown") },
		"not on a cluster that goes":     func(f *deletionFacts) { f.cluster.DeletionTimestamp = &metav1.Time{} },
		"not in a namespace that goes":   func(f *deletionFacts) { f.namespaceDeleting = true },
		"not without what it is made of": func(f *deletionFacts) { f.managed = false },
	} {
		t.Run(name, func(t *testing.T) {
			g := f
			g.cluster = f.cluster.DeepCopy()
			change(&g)
			assert.Empty(t, patched(decideDeletion(g)))
		})
	}
}

// Shows: hub/hook-both-sides
func TestHooksOfBothSides(t *testing.T) {
	host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "host"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	base := func() deletionFacts {
		f := leavingFacts(finalizerHook, finalizerHostedHook, finalizerHostedObjects)
		f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
		f.host = host
		there := hookJob()
		there.SetName("there")
		there.SetLabels(map[string]string{names.AnnotationHostedLocation: "hosting"})
		f.rendering.Objects = append(f.rendering.Objects, hookJob(), there)
		return f
	}
	created := func(p deletionPlan) []string {
		var all []string
		for _, s := range p.works {
			if s.Verb == reconcile.Create && strings.Contains(s.After.Name, "pre-delete") {
				all = append(all, s.After.Namespace+"/"+s.After.Name)
			}
		}
		return all
	}
	p := decideDeletion(base())
	assert.Equal(t, []string{"c1/addon-a-pre-delete", "host/addon-a-pre-delete-hosting-c1"}, created(p))
	c := meta.FindStatusCondition(p.conditions, "HookManifestCompleted")
	require.NotNil(t, c)
	assert.Contains(t, c.Message, "on cluster c1")
	assert.Contains(t, c.Message, "on hosting cluster host")

	f := base()
	f.works = []*workv1.ManifestWork{hookWork(t, "True")}
	p = decideDeletion(f)
	assert.Empty(t, p.drop, "the hook on the hosting cluster is not complete")
	assert.Equal(t, []string{"host/addon-a-pre-delete-hosting-c1"}, created(p))

	f = base()
	f.host = nil
	f.works = []*workv1.ManifestWork{hookWork(t, "True"), hostingWork("addon-a-deploy-hosting-c1-0")}
	p = decideDeletion(f)
	assert.Len(t, p.drop, 3)
	assert.True(t, p.skipped, "a hook cannot run on a cluster that does not exist")
	assert.Equal(t, []string{"host/addon-a-deploy-hosting-c1-0"}, removed(p))

	f = base()
	there := hostingWork("addon-a-pre-delete-hosting-c1")
	done := hookWork(t, "True")
	there.Spec, there.Status = done.Spec, done.Status
	f.works = []*workv1.ManifestWork{done, there}
	f.hosts = map[string]*clusterv1.ManagedCluster{"host": host}
	p = decideDeletion(f)
	assert.Equal(t, []string{"host/addon-a-pre-delete-hosting-c1"}, removed(p))
	f.works = f.works[:1]
	assert.Equal(t, []string{"host/addon-a-pre-delete-hosting-c1"}, created(decideDeletion(f)), "nothing says that it ran")
	f.addOn.Annotations[names.AnnotationHookAttempts] = p.attempts
	p = decideDeletion(f)
	assert.Empty(t, p.works, "a hook ran whose work is gone, because the finalizers could not be removed with it")
	assert.Len(t, p.drop, 3)
	f.addOn.UID = "made again"
	assert.Empty(t, decideDeletion(f).drop, "an add-on that is created again with the record of the former one")

	f = base()
	f.addOn.Finalizers = nil
	f.addOn.Status.Conditions = []metav1.Condition{{Type: "HookManifestCompleted", Status: metav1.ConditionFalse}}
	f.addOn.Finalizers = []string{"example.com/mine"}
	c = meta.FindStatusCondition(decideDeletion(f).conditions, "HookManifestCompleted")
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
}

func TestAHookThatAnEarlierAddOnLeftIsRemoved(t *testing.T) {
	f := factsOf(configMap("a", 1))
	f.works = []*workv1.ManifestWork{hostingWork("addon-a-pre-delete-hosting-c1")}
	p := decide(f)
	require.NotEmpty(t, p.works)
	last := p.works[len(p.works)-1]
	assert.Equal(t, reconcile.Delete, last.Verb)
	assert.Equal(t, "addon-a-pre-delete-hosting-c1", last.Before.Name)
}

// Shows: hub/hook-guarded
func TestFinalizersAreThoseThatTheAddOnNeeds(t *testing.T) {
	tests := map[string]struct {
		have, want, after []string
		changed           bool
	}{
		"nothing to guard":              {nil, nil, nil, false},
		"one is added":                  {[]string{"x"}, []string{finalizerHook}, []string{"x", finalizerHook}, true},
		"one is not needed any more":    {[]string{finalizerHostedObjects, "x"}, nil, []string{"x"}, true},
		"an old spelling goes":          {[]string{finalizerHookOld}, []string{finalizerHook}, []string{finalizerHook}, true},
		"an old spelling goes anyway":   {[]string{finalizerHostedHookOld, "x"}, nil, []string{"x"}, true},
		"all are there, in their order": {[]string{finalizerHook, "x"}, []string{finalizerHook}, []string{finalizerHook, "x"}, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			after, isChanged := withGuards(test.have, test.want)
			assert.Equal(t, test.changed, isChanged)
			assert.ElementsMatch(t, test.after, after)
		})
	}
	f := factsOf(configMap("a", 1), hookJob())
	p := decide(f)
	require.NotNil(t, p.finalizers)
	assert.Equal(t, []string{finalizerHook}, *p.finalizers)
	f.renderErr = errors.New("unknown")
	f.addOn.Finalizers = []string{finalizerHook}
	assert.Nil(t, decide(f).finalizers, "a finalizer stays as long as the hooks are unknown")
}

func TestFinalizersThatAreNotNeededAreNamed(t *testing.T) {
	removed, because := unneeded([]string{"x", finalizerHookOld, finalizerHostedObjects}, []string{"x", finalizerHostedObjects})
	assert.Equal(t, []string{finalizerHookOld}, removed)
	assert.Equal(t, "The add-on has no pre-delete hook.", because)
	removed, _ = unneeded([]string{finalizerHookOld}, []string{finalizerHook})
	assert.Empty(t, removed, "it has got its present spelling")
}
