package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// time1 is any instant.
var time1 = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func secret(name string, edit func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if edit != nil {
		edit(s)
	}
	return s
}

func TestAStepWritesWhatItSays(t *testing.T) {
	labelled := func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} }
	uid := func(u types.UID) func(*corev1.Secret) { return func(s *corev1.Secret) { s.UID = u } }
	refused := errors.New("not ours")
	type step = Step[*corev1.Secret]
	for sentence, tc := range map[string]struct {
		exists *corev1.Secret
		step   func(exists *corev1.Secret) step
		adopt  func(want, found *corev1.Secret) ([]step, error)
		// labels are those of the object afterwards; nil means that it is gone.
		labels map[string]string
		class  Class
	}{
		"create": {
			step:   func(*corev1.Secret) step { return step{Verb: Create, After: secret("s", labelled)} },
			labels: map[string]string{"a": "b"},
		},
		"patch": {
			exists: secret("s", nil), labels: map[string]string{"a": "b"},
			step: func(have *corev1.Secret) step {
				after := have.DeepCopy()
				labelled(after)
				return step{Verb: Patch, Before: have, After: after}
			},
		},
		"keep": {
			exists: secret("s", nil), labels: map[string]string{},
			step: func(have *corev1.Secret) step { return step{Verb: Keep, Before: have, After: have} },
		},
		"delete": {
			exists: secret("s", nil),
			step:   func(have *corev1.Secret) step { return step{Verb: Delete, Before: have} },
		},
		"deleting what is gone succeeds": {
			step: func(*corev1.Secret) step { return step{Verb: Delete, Before: secret("s", nil)} },
		},
		"patching what was being deleted and is gone succeeds": {
			step: func(*corev1.Secret) step {
				before := secret("s", func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: time1} })
				after := before.DeepCopy()
				labelled(after)
				return step{Verb: Patch, Before: before, After: after}
			},
		},
		"replace": {
			exists: secret("s", uid("old")), labels: map[string]string{"a": "b"},
			step: func(have *corev1.Secret) step {
				return step{Verb: Replace, Before: have, After: secret("s", labelled)}
			},
		},
		"a name that is taken is a lost race": {
			exists: secret("s", nil), labels: map[string]string{}, class: ClassLostRace,
			step: func(*corev1.Secret) step { return step{Verb: Create, After: secret("s", labelled)} },
		},
		"so it is when there is nothing to adopt": {
			exists: secret("s", nil), labels: map[string]string{}, class: ClassLostRace,
			step:  func(*corev1.Secret) step { return step{Verb: Create, After: secret("s", labelled)} },
			adopt: func(_, _ *corev1.Secret) ([]step, error) { return nil, nil },
		},
		"an object that must not be touched stays": {
			exists: secret("s", nil), labels: map[string]string{}, class: ClassRetry,
			step:  func(*corev1.Secret) step { return step{Verb: Create, After: secret("s", labelled)} },
			adopt: func(_, _ *corev1.Secret) ([]step, error) { return nil, refused },
		},
		"an object that may be adopted becomes the desired one": {
			exists: secret("s", func(s *corev1.Secret) { s.Labels = map[string]string{"other": "x"} }),
			labels: map[string]string{"a": "b", "other": "x"},
			step:   func(*corev1.Secret) step { return step{Verb: Create, After: secret("s", labelled)} },
			adopt: func(_, found *corev1.Secret) ([]step, error) {
				after := found.DeepCopy()
				after.Labels["a"] = "b"
				return []step{{Verb: Patch, Before: found, After: after}}, nil
			},
		},
		"an unknown verb writes nothing": {
			exists: secret("s", nil), labels: map[string]string{}, class: ClassRetry,
			step: func(have *corev1.Secret) step { return step{Verb: "?", Before: have, After: have} },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.exists != nil {
				builder = builder.WithObjects(tc.exists)
			}
			c := builder.Build()
			have := secret("s", nil)
			require.NoError(t, client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(have), have)))
			w := Writer[*corev1.Secret]{Client: c, Live: c, Adopt: tc.adopt}
			_, err := w.Run(t.Context(), tc.step(have))
			assert.Equal(t, tc.class, FromError(err).Class(), "%v", err)
			var got corev1.Secret
			err = c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "s"}, &got)
			if tc.labels == nil {
				assert.True(t, apierrors.IsNotFound(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.labels, nonNil(got.Labels))
		})
	}
}

func nonNil(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

func TestAStepIsAboutTheObjectThatIsDeletedOrDesired(t *testing.T) {
	before, after := secret("before", nil), secret("after", nil)
	for verb, want := range map[Verb]string{Create: "after", Patch: "after", Replace: "after", Keep: "after", Delete: "before"} {
		assert.Equal(t, want, Step[*corev1.Secret]{Verb: verb, Before: before, After: after}.Object().Name, verb)
	}
}

func TestAnOwnDeletionReplacesThatOfTheClient(t *testing.T) {
	removed := ""
	w := Writer[*corev1.Secret]{Remove: func(_ context.Context, s *corev1.Secret) error {
		removed = s.Name
		return nil
	}}
	_, err := w.Run(t.Context(), Step[*corev1.Secret]{Verb: Delete, Before: secret("s", nil)})
	require.NoError(t, err)
	assert.Equal(t, "s", removed)
}

func TestGetReturnsNilForWhatDoesNotExist(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(secret("s", nil)).Build()
	found, err := Get(t.Context(), c, types.NamespacedName{Namespace: "ns", Name: "s"}, &corev1.Secret{})
	require.NoError(t, err)
	assert.Equal(t, "Secret ns/s", Describe(found))
	found, err = Get(t.Context(), c, types.NamespacedName{Namespace: "ns", Name: "none"}, &corev1.Secret{})
	require.NoError(t, err)
	assert.Nil(t, found)
	_, err = Get(t.Context(), c, types.NamespacedName{Name: "x"}, &unknownKind{})
	assert.ErrorContains(t, err, "reading unknownKind x: ")
}

// unknownKind is an object that no scheme knows.
type unknownKind struct{ corev1.Secret }

func TestPredicatesOfCreationAndDeletion(t *testing.T) {
	alive, leaving := secret("s", nil), secret("s", func(s *corev1.Secret) {
		s.DeletionTimestamp = &metav1.Time{Time: time1}
	})
	begins := event.UpdateEvent{ObjectOld: alive, ObjectNew: leaving}
	changes := event.UpdateEvent{ObjectOld: leaving, ObjectNew: leaving}
	p := CreatedOrDeleted()
	assert.True(t, p.Create(event.CreateEvent{}))
	assert.True(t, p.Delete(event.DeleteEvent{}))
	assert.False(t, p.Update(begins))
	assert.False(t, p.Generic(event.GenericEvent{}))
	p = DeletionStarted()
	assert.False(t, p.Create(event.CreateEvent{}))
	assert.False(t, p.Delete(event.DeleteEvent{}))
	assert.False(t, p.Generic(event.GenericEvent{}))
	assert.True(t, p.Update(begins))
	assert.False(t, p.Update(changes))
}

func TestAMetricIsRegisteredOnce(t *testing.T) {
	counter := func(help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c", Help: help}, []string{"l"})
	}
	registry, first := prometheus.NewRegistry(), counter("h")
	got, err := RegisterMetric(registry, first)
	require.NoError(t, err)
	assert.Same(t, first, got)
	got, err = RegisterMetric(registry, counter("h"))
	require.NoError(t, err)
	assert.Same(t, first, got, "both count together")
	_, err = RegisterMetric(registry, counter("something else"))
	require.Error(t, err)
	own := counter("h")
	got, err = RegisterMetric(nil, own)
	require.NoError(t, err)
	assert.Same(t, own, got)
}
