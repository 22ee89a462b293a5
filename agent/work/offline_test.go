package work

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/offline"
)

func TestWhichCopiesMayBeUsed(t *testing.T) {
	spec := workv1.AppliedManifestWorkSpec{HubHash: "hub", AgentID: "agent", ManifestWorkName: "w"}
	known := &offline.Copy{Work: &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{UID: "w", Generation: 7}}, Applied: "u"}
	applied := func(value string) func(*workv1.AppliedManifestWork) {
		return func(a *workv1.AppliedManifestWork) {
			a.Annotations = map[string]string{inventory.AnnotationGeneration: value}
		}
	}
	record := func(change func(*workv1.AppliedManifestWork)) *workv1.AppliedManifestWork {
		a := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: spec}
		change(a)
		return a
	}
	for sentence, c := range map[string]struct {
		applied *workv1.AppliedManifestWork
		why     string
	}{
		"the record is as it was":               {record(func(*workv1.AppliedManifestWork) {}), ""},
		"there is no record":                    {nil, "there is no AppliedManifestWork"},
		"the record was made again":             {record(func(a *workv1.AppliedManifestWork) { a.UID = "v" }), "another one"},
		"the record is of another agent":        {record(func(a *workv1.AppliedManifestWork) { a.Spec.AgentID = "b" }), "another hub"},
		"the record is of another hub":          {record(func(a *workv1.AppliedManifestWork) { a.Spec.HubHash = "b" }), "another hub"},
		"the copy is what was applied":          {record(applied("w/7")), ""},
		"the copy is newer":                     {record(applied("w/6")), ""},
		"the copy is older":                     {record(applied("w/8")), "of generation 7, and generation 8 was applied"},
		"the copy is of another work":           {record(applied("v/7")), "another one"},
		"what was applied cannot be read":       {record(applied("w/x")), "cannot be read"},
		"nor this":                              {record(applied("")), "cannot be read"},
		"the record, and with it all, is going": {record(func(a *workv1.AppliedManifestWork) { a.DeletionTimestamp = ptr.To(metav1.Now()) }), "being deleted"},
	} {
		t.Run(sentence, func(t *testing.T) {
			why := unusable(c.applied, known, spec)
			if c.why == "" {
				assert.Empty(t, why)
				return
			}
			assert.Contains(t, why, c.why)
		})
	}
}

func TestWithoutTheHubNothingNewIsMade(t *testing.T) {
	manifests := read(t, configMap("known"), configMap("new"), `{`)
	withholdUnknown(manifests, []workv1.AppliedManifestResourceMeta{entryOf("known", "1")})
	require.NoError(t, manifests[0].Err)
	require.ErrorIs(t, manifests[1].Err, errWithheld)
	require.Error(t, manifests[2].Err)
	assert.NotErrorIs(t, manifests[2].Err, errWithheld)
}

// TestAFailedRepairWithoutTheHubIsTriedAgain has an object deleted and its creation refused, for example because its
// namespace is on its way out.
//
// Shows: work/offline-repairs-again
func TestAFailedRepairWithoutTheHubIsTriedAgain(t *testing.T) {
	before := []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("b", "2"), entryOf("left", "3")}
	manifests := read(t, configMap("a"), configMap("b"))
	results := []apply.Result{
		{Presence: manifest.Absent, Err: errors.New("the namespace is being terminated")},
		{Presence: manifest.Present, UID: "new"},
	}
	list := listOffline(manifests, results, before)
	assert.Equal(t, []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("b", "new"), entryOf("left", "3")}, list)
	again := read(t, configMap("a"), configMap("b"))
	withholdUnknown(again, list)
	require.NoError(t, again[0].Err, "the next pass makes it")
	require.NoError(t, again[1].Err)
}

func TestThePhaseWithoutTheHub(t *testing.T) {
	work, applied := &workv1.ManifestWork{}, &workv1.AppliedManifestWork{}
	going := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
	for sentence, c := range map[string]struct {
		facts facts
		want  phase
	}{
		"a work that is not known is not gone":          {facts{offline: true}, phaseUnknown},
		"nor is it abandoned":                           {facts{offline: true, applied: applied}, phaseUnknown},
		"a copy is kept to":                             {facts{offline: true, work: work, applied: applied}, phaseOffline},
		"also when it is from the time of its deletion": {facts{offline: true, work: going, applied: applied}, phaseOffline},
		"a cache that lags is waited for":               {facts{offline: true, work: work, stale: true}, phaseStale},
		"with the hub all is as ever":                   {facts{work: work, applied: applied}, phaseApply},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, c.facts.phase()) })
	}
}
