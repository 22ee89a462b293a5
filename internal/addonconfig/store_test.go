package addonconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
)

// Shows: hub/stored-again
func TestAStoredContentThatSomebodyDeletesIsStoredAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}).Build()
	s := &Store{Client: hub, Home: "home"}
	template := fixture.Template("t")
	states, err := s.States(t.Context(), template)
	require.NoError(t, err)
	content := Chosen{ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, states[template].Hash)}
	stored := func() []*appsv1.ControllerRevision {
		t.Helper()
		require.NoError(t, s.Keep(t.Context(), "hello", content))
		revisions, err := s.Revisions(t.Context(), "hello")
		require.NoError(t, err)
		return revisions
	}
	require.Len(t, stored(), 1)
	revisions := stored()
	require.Len(t, revisions, 1, "once")
	require.NoError(t, hub.Delete(t.Context(), revisions[0]))
	assert.Len(t, stored(), 1, "a person tidied up")
}

// A reader has it from the cache, and goes on after the event of its deletion.
func TestAReaderOfAContentDoesNotForgetThatItWasLostMeanwhile(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	content := Chosen{ConfigSpecHash: addonv1beta1.ConfigSpecHash{SpecHash: "one"}}
	revision, err := newRevision("home", "hello", content, &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
	})
	require.NoError(t, err)
	revision.UID = "first"
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(revision.DeepCopy()).Build()
	s := &Store{Home: "home"}
	s.Client = interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			s.Deleted(revision)
			s.Lost(revision)
			return err
		},
	})
	_, err = s.Kept(t.Context(), "hello", content)
	require.NoError(t, err)
	require.NoError(t, hub.Delete(t.Context(), revision.DeepCopy()))
	s.Client = hub
	require.NoError(t, errors.Join(s.Restore(t.Context(), "hello", nil)))
	all, err := s.Revisions(t.Context(), "hello")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, s.Forget(t.Context(), all[0]))
	require.NoError(t, errors.Join(s.Restore(t.Context(), "hello", nil)))
	all, err = s.Revisions(t.Context(), "hello")
	require.NoError(t, err)
	assert.Empty(t, all, "what is not needed any more is not stored again")
}

func TestContentsThatAreLostTakeLittleMemory(t *testing.T) {
	s := &Store{Home: "home"}
	for i := range 100 {
		s.Lost(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: fmt.Sprintf("hello-%d", i)},
			Data:       runtime.RawExtension{Raw: make([]byte, 1<<20)},
		})
	}
	assert.LessOrEqual(t, len(s.lost), maxLost>>20)
	assert.Contains(t, s.lost, "hello-99")
}

// A cache has configurations packed. All that a reader gets unpacks to its content.
func TestWhatIsReadFromACacheHasItsContent(t *testing.T) {
	for _, packed := range []bool{true, false} {
		t.Run(fmt.Sprintf("stored ones packed: %t", packed), func(t *testing.T) { testCached(t, packed) })
	}
}

func testCached(t *testing.T, packed bool) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&addonv1alpha1.AddOnTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t", UID: "u"}, Spec: addonv1alpha1.AddOnTemplateSpec{AddonName: "hello"},
	}).WithInterceptorFuncs(interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
	) error {
		err := c.Get(ctx, key, o, options...)
		if u, is := o.(*unstructured.Unstructured); is && err == nil {
			out, err := confighash.Pack(u)
			if packed, is := out.(*unstructured.Unstructured); is {
				u.Object = packed.Object
			}
			return err
		}
		return err
	}}).Build()
	s := &Store{Client: hub, Home: "home", Packed: packed}
	template := fixture.Template("t")
	nameIn := func(o *unstructured.Unstructured, err error) string {
		require.NoError(t, err)
		whole, err := confighash.Unpack(o)
		require.NoError(t, err)
		name, _, err := unstructured.NestedString(whole.Object, "spec", "addonName")
		require.NoError(t, err)
		return name
	}
	present, err := s.Present(t.Context(), template)
	require.NoError(t, err)
	assert.Equal(t, "hello", nameIn(present.Object, nil))
	assert.Equal(t, "hello", nameIn(s.Content(t.Context(), "hello", present.Chosen)), "the present one")
	require.NoError(t, s.Keep(t.Context(), "hello", present.Chosen))
	stored, err := s.Kept(t.Context(), "hello", present.Chosen)
	assert.Equal(t, "hello", nameIn(stored, err), "the stored one")
	assert.Equal(t, packed, stored.Object["spec"] == nil)
	hash, err := confighash.SpecHash(stored)
	require.NoError(t, err)
	assert.Equal(t, present.SpecHash, hash)
	again, err := s.Kept(t.Context(), "hello", present.Chosen)
	require.NoError(t, err)
	assert.Same(t, stored, again, "it is read once")
	missing, err := s.Present(t.Context(), fixture.Template("missing"))
	require.NoError(t, err)
	assert.Nil(t, missing)
}

// A template that takes too much memory is not used and not stored. One that an earlier version stored runs on.
// Shows: hub/content-bounded
func TestWhatTakesTooMuchMemoryIsRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	of := func(small int) *unstructured.Unstructured {
		u, known := confighash.New(confighash.Template())
		require.True(t, known)
		u.SetName("t")
		u.Object["spec"] = map[string]any{"addonName": "hello", "agentSpec": map[string]any{"workload": map[string]any{
			"manifests": []any{map[string]any{"x": slices.Repeat([]any{map[string]any{"": int64(0)}}, small)}},
		}}}
		return u
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(of(1)).Build()
	s := &Store{Client: hub, Home: "home"}
	template := fixture.Template("t")
	small, err := s.Present(t.Context(), template)
	require.NoError(t, err)
	require.NotNil(t, small)
	dense := of(100_000)
	dense.SetResourceVersion(small.Object.GetResourceVersion())
	require.NoError(t, hub.Update(t.Context(), dense))
	states, err := s.States(t.Context(), template)
	require.NoError(t, err)
	const why = "it takes about 35 MiB of memory when it is decoded, and may take 24; it has too many small values: divide it"
	assert.Equal(t, State{Refused: why}, states[template])
	_, err = s.Present(t.Context(), template)
	require.EqualError(t, err, "addontemplates \"t\" cannot be used: "+why)

	hash, err := confighash.SpecHash(dense)
	require.NoError(t, err)
	chosen := Chosen{ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, hash)}
	require.NoError(t, s.Keep(t.Context(), "hello", chosen))
	object, err := s.Content(t.Context(), "hello", chosen)
	require.NoError(t, err)
	assert.Nil(t, object, "it is neither stored nor used")
	revision, err := newRevision("home", "hello", chosen, dense)
	require.NoError(t, err)
	require.NoError(t, hub.Create(t.Context(), revision))
	object, err = s.Content(t.Context(), "hello", chosen)
	require.NoError(t, err)
	assert.NotNil(t, object, "clusters that have it keep it")
	require.NoError(t, hub.Delete(t.Context(), revision))
	_, err = s.Content(t.Context(), "hello", chosen)
	require.NoError(t, err)
	assert.Empty(t, s.contents, "nothing is kept of what a person deleted")

	cma := &addonv1beta1.ClusterManagementAddOn{}
	cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{template}
	target := NewTarget(Inputs{AddOn: &addonv1beta1.ManagedClusterAddOn{}, CMA: cma, Placement: -1, States: states})
	require.Len(t, target.Missing, 1)
	assert.Contains(t, target.Missing[0], "cannot be used: "+why)
}

// Shows: hub/deletion-linear
func TestOnlyTheReferencesThatAreNeededAreRead(t *testing.T) {
	content := func(hash string) Chosen {
		template := fixture.Template("t")
		return Chosen{ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, hash)}
	}
	kept := func(hash string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: revisionName("hello", content(hash))}}
	}
	read := 0
	references := func(yield func(Chosen) bool) {
		for range 3000 {
			if read++; !yield(content("1")) {
				return
			}
		}
	}
	assert.Empty(t, Obsolete("hello", []*appsv1.ControllerRevision{kept("1")}, references))
	assert.LessOrEqual(t, read, 2)
	assert.Equal(t, []*appsv1.ControllerRevision{kept("2")},
		Obsolete("hello", []*appsv1.ControllerRevision{kept("1"), kept("2")}, references))
	assert.GreaterOrEqual(t, read, 3000, "what nothing refers to is looked for everywhere")
}

// The answer to the creation comes after the event of the deletion.
func TestACreationThatIsAnsweredAfterItsDeletionIsNotBelieved(t *testing.T) {
	for sentence, again := range map[string]bool{"it is kept again": false, "it is lost, and restored": true} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			require.NoError(t, appsv1.AddToScheme(scheme))
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				&addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}).Build()
			s := &Store{Home: "home"}
			late := true
			s.Client = interceptor.NewClient(hub, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					err := c.Create(ctx, o, options...)
					if revision, is := o.(*appsv1.ControllerRevision); is && late {
						late = false
						// A user deletes it, and the event is handled, before the answer is.
						require.NoError(t, c.Delete(ctx, revision.DeepCopy()))
						s.Deleted(revision)
						if again {
							s.Lost(revision.DeepCopy())
						}
					}
					return err
				},
			})
			template := fixture.Template("t")
			states, err := s.States(t.Context(), template)
			require.NoError(t, err)
			content := Chosen{ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, states[template].Hash)}
			require.NoError(t, s.Keep(t.Context(), "hello", content))
			for range 3 { // later passes
				require.NoError(t, errors.Join(s.Restore(t.Context(), "hello", nil)))
				require.NoError(t, s.Keep(t.Context(), "hello", content))
			}
			all, err := s.Revisions(t.Context(), "hello")
			require.NoError(t, err)
			assert.Len(t, all, 1, "it would never be stored again")
		})
	}
}

// Two contents were lost. A policy, or a copy that a finalizer keeps, refuses one of them for good.
func TestAContentThatIsRefusedKeepsNoOtherFromBeingRestored(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	hub := fake.NewClientBuilder().WithScheme(scheme).Build()
	s := &Store{Home: "home"}
	var names []string
	for _, hash := range []string{"one", "two"} {
		revision, err := newRevision("home", "hello", Chosen{ConfigSpecHash: addonv1beta1.ConfigSpecHash{SpecHash: hash}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}})
		require.NoError(t, err)
		s.Lost(revision)
		names = append(names, revision.Name)
	}
	bad := min(names[0], names[1])
	s.Client = interceptor.NewClient(hub, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if o.GetName() == bad {
				return errors.New("denied the request: too large")
			}
			return c.Create(ctx, o, options...)
		},
	})
	for range 3 {
		require.Error(t, errors.Join(s.Restore(t.Context(), "hello", nil)))
	}
	all, err := s.Revisions(t.Context(), "hello")
	require.NoError(t, err)
	assert.Len(t, all, 1, "the other one is never stored again")
}
