package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

const (
	mark    = "addon.open-cluster-management.io/addon-pre-delete"
	oldMark = "open-cluster-management.io/addon-pre-delete"

	skip = "addon.spokelet.io/pre-delete-deadline=0s addon.spokelet.io/pre-delete-after-deadline=Skip"
)

// hook is the manifest of a hook in flow style. more are annotations besides the mark.
func hook(kind, name, mark string, more ...string) string {
	annotations := strings.Join(append([]string{mark + `: ""`}, more...), ", ")
	if kind == "Pod" {
		return fmt.Sprintf(`- {apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: ADDON-agents, labels: {%s}}, `+
			`spec: {restartPolicy: Never, containers: [{name: c, image: "registry.example.com/clean:v1"}]}}`, name, annotations)
	}
	return fmt.Sprintf(`- {apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: ADDON-agents, annotations: {%s}}, `+
		`spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "registry.example.com/clean:v1"}]}}}}`,
		name, annotations)
}

// on places a hook on a side.
func on(side string) string {
	return "addon.open-cluster-management.io/hosted-manifest-location: " + side
}

func job(f fixture, name string) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{
		Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: f.addOn + "-agents", Name: name,
	}
}

func (f fixture) hookKey() client.ObjectKey {
	return client.ObjectKey{Namespace: f.cluster, Name: "addon-" + f.addOn + "-pre-delete"}
}

func (f fixture) hostedHookKey(host string) client.ObjectKey {
	return client.ObjectKey{Namespace: host, Name: "addon-" + f.addOn + "-pre-delete-hosting-" + f.cluster}
}

// uid waits for a work other than one, and returns its UID.
func uid(t *testing.T, key client.ObjectKey, other string) string {
	t.Helper()
	var work workv1.ManifestWork
	suite.Eventually(t, suite.True("there must be a new work "+key.String(), func() bool {
		work = workv1.ManifestWork{}
		return plane.Client.Get(t.Context(), key, &work) == nil && string(work.UID) != other && work.DeletionTimestamp == nil
	}))
	return string(work.UID)
}

// delete deletes the add-on.
func (f fixture) delete(t *testing.T) {
	t.Helper()
	require.NoError(t, plane.Client.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: f.addOn},
	}))
}

// deleting waits until the add-on waits for a reason, with a text.
func (f fixture) deleting(t *testing.T, reason string, texts ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		addOn := f.get(t.Context())
		if addOn == nil {
			return fmt.Errorf("the add-on is gone")
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, "addon.spokelet.io/Deleting")
		if c == nil || c.Reason != reason {
			return fmt.Errorf("the condition is not %s: %v", reason, c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("the message does not have %q: %s", text, c.Message)
			}
		}
		return nil
	})
}

// Shows: hub/hook-guarded, hub/hook-both-sides, hub/hook-order
func TestHooksRunOnBothSidesBeforeAnythingGoes(t *testing.T) {
	t.Parallel()
	host(t, "hooked-host")
	f := installHosted(t, "hooked", "hooked-host",
		hook("Job", "clean", mark), hook("Pod", "old", oldMark), hook("Job", "clean-agent", mark, on("hosting")))
	holds(t, f.managedKey(), deployed)
	holds(t, f.hostedKey("hooked-host"), hosted)
	f.finalizers(t, objectsFinalizer, hookFinalizer, hostedHookFinalizer)
	_, found := content(t.Context(), f.hookKey())
	assert.False(t, found, "a hook runs at the deletion only")

	f.delete(t)
	holds(t, f.hookKey(), "Job/clean,Pod/old")
	holds(t, f.hostedHookKey("hooked-host"), "Job/clean-agent")
	f.condition(t, "HookManifestCompleted", metav1.ConditionFalse, "HookManifestIsNotCompleted")
	f.deleting(t, "WaitingForHook", "on cluster hooked-cluster", "on hosting cluster hooked-host", skip)

	// What a hook may need is kept as it should be.
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: f.managedKey().Name}}
	before := uid(t, f.managedKey(), "")
	require.NoError(t, plane.Client.Delete(t.Context(), work))
	uid(t, f.managedKey(), before)
	holds(t, f.hostedKey("hooked-host"), hosted)

	// The hub manager may be restarted at any time.
	hookUID := uid(t, f.hookKey(), "")
	program.Restart()

	reports(t, f.hostedHookKey("hooked-host"), job(f, "clean-agent"), map[string]any{"JobComplete": "True"})
	f.deleting(t, "WaitingForHook", "The pre-delete hook is complete on hosting cluster hooked-host.",
		"runs on cluster hooked-cluster and is not complete")
	holds(t, f.hostedKey("hooked-host"), hosted)
	f.finalizers(t, objectsFinalizer, hookFinalizer, hostedHookFinalizer)

	reports(t, f.hookKey(), job(f, "clean"), map[string]any{"JobComplete": "True"})
	f.annotate(t, "touched", "yes")
	f.deleting(t, "WaitingForHook", "runs on cluster hooked-cluster and is not complete")
	assert.Equal(t, hookUID, uid(t, f.hookKey(), ""), "a hook runs once")
	bothDone(t, f)
	f.goneWithin(t, suite.Timeout)
	holds(t, f.hostedKey("hooked-host"), "")
	holds(t, f.hostedHookKey("hooked-host"), "")
}

// bothDone reports both hooks of the managed cluster as done.
func bothDone(t *testing.T, f fixture) {
	t.Helper()
	suite.Eventually(t, func() error {
		var work workv1.ManifestWork
		if err := plane.Client.Get(t.Context(), f.hookKey(), &work); err != nil {
			return err
		}
		phase := "Succeeded"
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Version: "v1", Kind: "Pod", Resource: "pods", Namespace: f.addOn + "-agents", Name: "old",
			},
			Conditions: []metav1.Condition{},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: "PodPhase", Value: workv1.FieldValue{Type: workv1.String, String: &phase}},
			}},
		})
		return plane.Client.Status().Update(t.Context(), &work)
	})
}

// Shows: hub/hook-guarded
func TestFinalizersFollowTheHooks(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "follows", "")
	holds(t, f.managedKey(), inDefaultMode)
	f.finalizers(t)
	f.applyHosted(t, hook("Job", "clean", mark, on("hosting")))
	f.finalizers(t, hookFinalizer)
	f.applyHosted(t)
	f.finalizers(t)
}

// Shows: hub/hook-retried, hub/hook-deadline, hub/hook-skipped
func TestAHookThatFailsIsTriedAgainUntilAPersonDecides(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "failing", "", hook("Job", "clean", mark))
	holds(t, f.managedKey(), inDefaultMode)
	f.finalizers(t, hookFinalizer)
	f.delete(t)
	failed := map[string]any{"HookFailed": "True", "HookMessage": "Job has reached the specified backoff limit"}
	step := func(d time.Duration) {
		deployClock.SetTime(deployClock.Now().Add(d))
		f.annotate(t, "touched", deployClock.Now().String())
	}
	last := ""
	for attempt, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
		last = uid(t, f.hookKey(), last)
		reports(t, f.hookKey(), job(f, "clean"), failed)
		f.deleting(t, "HookFailed", fmt.Sprintf("attempt %d of 5", attempt+1),
			"Job failing-agents/clean failed: Job has reached the specified backoff limit.")
		if attempt == 1 {
			program.Restart()
		}
		step(pause - 2*time.Second)
		f.deleting(t, "HookFailed", fmt.Sprintf("attempt %d of 5", attempt+1))
		assert.Equal(t, last, uid(t, f.hookKey(), ""), "it is not tried again before its time")
		step(2 * time.Second)
	}
	f.deleting(t, "HookFailed", "It is not tried again.",
		"kubectl annotate managedclusteraddon failing -n failing-cluster addon.spokelet.io/pre-delete-attempts-")
	assert.Equal(t, last, uid(t, f.hookKey(), ""))

	// A person starts the attempts again.
	f.annotate(t, "addon.spokelet.io/pre-delete-attempts", "")
	f.deleting(t, "HookFailed", "attempt 1 of 5")
	step(30 * time.Second)
	last = uid(t, f.hookKey(), last)
	f.deleting(t, "WaitingForHook")

	// A deadline that has passed waits for a person, who may lift it.
	f.annotate(t, "addon.spokelet.io/pre-delete-deadline", "1m")
	f.deleting(t, "HookDeadlineExceeded", "The deadline of 1m0s after the deletion has passed",
		"--overwrite addon.spokelet.io/pre-delete-deadline=none")
	f.annotate(t, "addon.spokelet.io/pre-delete-deadline", "none")
	f.deleting(t, "WaitingForHook")
	assert.Equal(t, last, uid(t, f.hookKey(), ""), "the hook went on meanwhile")

	// Or does without the hook.
	f.annotate(t, "addon.spokelet.io/pre-delete-deadline", "0s")
	f.annotate(t, "addon.spokelet.io/pre-delete-after-deadline", "Skip")
	f.goneWithin(t, suite.Timeout)
}

// Shows: hub/hook-deadline
func TestTheAuthorOfAHookSetsItsDeadline(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "author", "", hook("Job", "clean", mark,
		"addon.spokelet.io/pre-delete-deadline: 0s", "addon.spokelet.io/pre-delete-after-deadline: Wait"))
	f.finalizers(t, hookFinalizer)
	f.delete(t)
	f.deleting(t, "HookDeadlineExceeded", "The deadline of 0s")
	reports(t, f.hookKey(), job(f, "clean"), map[string]any{"JobComplete": "True"})
	f.goneWithin(t, suite.Timeout)
}

// Shows: hub/hook-cluster
func TestAHookWaitsForASilentClusterAndNotForOneThatIsGone(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "silent", "", hook("Job", "clean", mark))
	f.finalizers(t, hookFinalizer)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster}}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown, Reason: "Silent",
	})
	require.NoError(t, plane.Client.Status().Update(t.Context(), cluster))
	f.delete(t)
	f.deleting(t, "WaitingForHook", "The cluster does not report to the hub at present.")
	require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	f.goneWithin(t, suite.Timeout)
}

// Shows: hub/hook-foreground
func TestAHookRunsInADeletionInTheForeground(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "foreground", "", hook("Job", "clean", mark))
	holds(t, f.managedKey(), inDefaultMode)
	f.finalizers(t, hookFinalizer)
	// The garbage collector must know of the work, which it does at the latest when it deletes one.
	require.NoError(t, plane.Client.Delete(t.Context(), &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: f.addOn},
	}, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	suite.Within(t, collection, suite.True("the add-on must be deleted", func() bool {
		addOn := f.get(t.Context())
		return addOn != nil && addOn.DeletionTimestamp != nil
	}))
	holds(t, f.hookKey(), "Job/clean")
	first := uid(t, f.hookKey(), "")
	suite.Consistently(t, 3*time.Second, func() error {
		if _, found := content(t.Context(), f.hookKey()); !found {
			return fmt.Errorf("the work of the hook is gone")
		}
		return nil
	})
	holds(t, f.managedKey(), inDefaultMode)
	assert.Equal(t, first, uid(t, f.hookKey(), ""))
	reports(t, f.hookKey(), job(f, "clean"), map[string]any{"JobComplete": "True"})
	f.goneWithin(t, collection)
	suite.Within(t, collection, suite.True("the works must go", func() bool {
		_, deploy := content(t.Context(), f.managedKey())
		_, hook := content(t.Context(), f.hookKey())
		return !deploy && !hook
	}))
}
