package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
)

// faulty returns a client that panics when it is to make or read the object bad, and answers for the others.
func faulty() *dynamicfake.FakeDynamicClient {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		named := &unstructured.Unstructured{}
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			named, _ = action.Object.(*unstructured.Unstructured)
		case clienttesting.GetActionImpl:
			named.SetName(action.Name)
		}
		if named.GetName() == "bad" {
			panic("the defect")
		}
		made := named.DeepCopy()
		made.SetUID("uid")
		made.SetResourceVersion("1")
		return true, made, nil
	})
	return client
}

func TestAPanicOverOneManifestLeavesItsSiblingsAlone(t *testing.T) {
	r := lean()
	r.ledger = newLedger(func(holder) {}, func() {})
	r.authorizer = &authorizer{}
	r.applier = applier{spoke: spoke{client: faulty()}, evaluator: feedback.New(false, 0)}
	var err error
	r.counts, err = newCounters(nil)
	require.NoError(t, err)
	f := workOf([]byte(configMap("a")), []byte(configMap("bad")), []byte(configMap("b")))
	f.now = epoch
	f.manifests = r.readManifests(f)
	r.claim(f)
	tasks := r.tasks(f)

	results, _ := r.applyAll(t.Context(), f, tasks, nil)
	require.NoError(t, results[0].err)
	require.NoError(t, results[2].err)
	require.ErrorContains(t, results[1].err, "the agent failed, which is a defect of it: the defect")
	assert.True(t, results[1].lasting, "it is not tried again and again")
	assert.True(t, results[1].wake.After(epoch), "but after a while")
	assert.Equal(t, presenceUnknown, results[1].presence, "nothing is known of the object")

	for i := range tasks {
		tasks[i].prior = record{exists: true, uid: "known", checked: epoch.Add(-time.Minute), base: tasks[i].prior.base}
		tasks[i].expected = true
	}
	results, _ = r.applyAll(t.Context(), f, tasks, nil)
	require.ErrorContains(t, results[1].err, "the defect")
	assert.Equal(t, presencePresent, results[1].presence, "what was known stays known")
	assert.Equal(t, "known", results[1].uid)
	again := r.tasks(f)
	again[1].owner = tasks[1].owner
	assert.True(t, again[1].holds(), "the manifest that failed rests until something changes")
}

// unspeakable is a value that panics when it is printed, again and again.
type unspeakable struct{}

func (unspeakable) Error() string { panic(unspeakable{}) }

func TestAPanicWithAValueThatCannotBePrintedIsContained(t *testing.T) {
	fault := contain(t.Context(), "x", func() { panic(unspeakable{}) })
	require.NotNil(t, fault)
	assert.Contains(t, fault.message, "a work.unspeakable")
	assert.Nil(t, contain(t.Context(), "x", func() {}))
}

func TestAPanicOverOneDeletionLeavesItsSiblingsAlone(t *testing.T) {
	s, client := newStub(t, map[string]*unstructured.Unstructured{})
	d := drainer{spoke: client, ledger: newLedger(func(holder) {}, func() {}), patience: time.Minute}
	h := holder{name: "w"}
	d.ledger.claim(h, claims("a", "bad"), nil)
	left := d.drain(t.Context(), h, "mine", epoch, []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("bad", "2")},
		exempt{orphaned: func(identity) bool { return false }})
	require.NoError(t, left.err)
	assert.Empty(t, left.pending)
	assert.Len(t, s.requests(), 2)

	d.spoke.client = faulty()
	left = d.drain(t.Context(), h, "mine", epoch, []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("bad", "2")},
		exempt{orphaned: func(identity) bool { return false }})
	require.ErrorContains(t, left.err, "the defect")
	assert.Equal(t, []string{"bad=2"}, namesOf(left.pending), "nothing is forgotten")
	require.Len(t, left.held, 1)
	assert.Contains(t, left.held[0].because, "the agent failed, which is a defect of it")
}
