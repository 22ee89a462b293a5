package configure

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// storing is a hub with an add-on on clusters that runs with the stored content of its own configuration.
type storing struct {
	*testing.T
	client.WithWatch

	c       *Configurer
	config  addonv1beta1.AddOnConfig
	refused error
}

func newStoring(t *testing.T) *storing {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	s := &storing{T: t, config: fixture.DeploymentConfig("own")}
	own := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(own,
		&addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}).
		WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if _, is := o.(*appsv1.ControllerRevision); is && s.refused != nil {
					return s.refused
				}
				return c.Create(ctx, o, options...)
			},
		}).Build()
	s.c = &Configurer{
		AddOns: addonapi.Client{Client: s, Wire: addonapi.WireBeta}, Client: s,
		Store: &addonconfig.Store{Client: s, Home: "home"},
	}
	return s
}

// level changes the content of the configuration and returns its hash.
func (s *storing) level(value string) string {
	s.Helper()
	var own addonv1beta1.AddOnDeploymentConfig
	require.NoError(s, s.Get(s.Context(), client.ObjectKey{Namespace: "ns", Name: "own"}, &own))
	own.Spec.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "LEVEL", Value: value}}
	require.NoError(s, s.Update(s.Context(), &own))
	states, err := s.c.Store.States(s.Context(), s.config)
	require.NoError(s, err)
	return states[s.config].Hash
}

// prunes deletes the configuration.
func (s *storing) prunes() {
	s.Helper()
	require.NoError(s, s.Delete(s.Context(), &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}))
}

// runs creates an add-on that runs with a content, and stores that.
func (s *storing) runs(cluster, hash string) *addonv1beta1.ManagedClusterAddOn {
	s.Helper()
	addOn := fixture.AddOn(cluster, fixture.Has(s.config, hash))
	addOn.Spec.Configs = []addonv1beta1.AddOnConfig{s.config}
	require.NoError(s, s.Create(s.Context(), addOn.DeepCopy()))
	_, err := s.c.Configure(s.Context(), addOn)
	require.NoError(s, err)
	return addOn
}

// stored returns what is stored.
func (s *storing) stored() []appsv1.ControllerRevision {
	s.Helper()
	var all appsv1.ControllerRevisionList
	require.NoError(s, s.List(s.Context(), &all))
	return all.Items
}

// isStored reports whether a content is stored.
func (s *storing) isStored(revision appsv1.ControllerRevision) bool {
	s.Helper()
	return slices.ContainsFunc(s.stored(), func(r appsv1.ControllerRevision) bool { return r.Name == revision.Name })
}

// enqueued returns the clusters whose add-ons have a pass because of an event.
func (s *storing) enqueued(by func(q queue)) []string {
	s.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	by(q)
	var clusters []string
	for q.Len() > 0 {
		request, _ := q.Get()
		clusters = append(clusters, request.Namespace)
	}
	return clusters
}

// deletes does so with a stored content, as a person does, and returns who has a pass because of that.
func (s *storing) deletes(revision appsv1.ControllerRevision) []string {
	s.Helper()
	require.NoError(s, s.Delete(s.Context(), revision.DeepCopy()))
	return s.enqueued(func(q queue) { s.c.storesAgain(s.Context(), event.DeleteEvent{Object: revision.DeepCopy()}, q) })
}

// A cluster waits for its turn with a content that its configuration does not have any more.
//
// Shows: hub/stored-again
func TestAnEarlierContentThatAUserDeletesIsStoredAgain(t *testing.T) {
	for sentence, goes := range map[string]bool{"the add-on runs with it": false, "the add-on goes with it": true} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			addOn := s.runs("c1", s.level("one"))
			before := s.stored()[0]
			s.prunes()
			require.Equal(t, []string{"c1"}, s.deletes(before))
			if goes {
				addOn.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
			}
			_, err := s.c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.Len(t, s.stored(), 1)
			assert.Equal(t, before.Name, s.stored()[0].Name)
			assert.Equal(t, before.Data.Raw, s.stored()[0].Data.Raw)
			assert.Equal(t, before.Annotations, s.stored()[0].Annotations)
		})
	}
}

// A quota or a policy refuses ControllerRevisions in the namespace of the hub manager.
func TestAContentThatCannotBeStoredAgainIsTold(t *testing.T) {
	for sentence, tc := range map[string]struct{ lost bool }{
		"it was never stored":                  {},
		"it was stored, and a user deleted it": {lost: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			addOn := s.runs("c1", s.level("one"))
			if tc.lost {
				require.Equal(t, []string{"c1"}, s.deletes(s.stored()[0]))
			} else {
				one := s.stored()[0]
				require.NoError(t, s.Delete(t.Context(), &one))
				s.c.Store.Deleted(&one)
			}
			s.refused = quota()
			result, err := s.c.Configure(t.Context(), addOn)
			require.NoError(t, err, "the add-on is told, and keeps running with the present content")
			require.NoError(t, result.Err)
			require.NotNil(t, result.Record)
			after := addOn.DeepCopy()
			result.Record(after, addon.Progress{Now: fixture.Noon()})
			configured := meta.FindStatusCondition(after.Status.Conditions, "Configured")
			require.NotNil(t, configured)
			assert.Contains(t, configured.Message, "exceeded quota")
		})
	}
}

// The first add-on in the order of the cache is being deleted, a finalizer of others keeps it, and its cluster is gone:
// the deployer asks no Configurer about it.
func TestAnAddOnThatStaysStoresAgainWhatOneThatGoesMayNot(t *testing.T) {
	s := newStoring(t)
	hash := s.level("one")
	s.runs("c1", hash)
	s.runs("c2", hash)
	var first addonv1beta1.ManagedClusterAddOn
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: "hello"}, &first))
	first.Finalizers = []string{"example.com/others"}
	require.NoError(t, s.Update(t.Context(), &first))
	require.NoError(t, s.Delete(t.Context(), &first))
	s.level("two")
	assert.Contains(t, s.deletes(s.stored()[0]), "c2", "c1 has no pass that stores anything")
}

func TestWhereAllAddOnsGoEachIsAskedToStoreAgain(t *testing.T) {
	s := newStoring(t)
	hash := s.level("one")
	notes := s.c.notesAddOns()
	clusters := []string{"c1", "c2", "c3"}
	var addOn *addonv1beta1.ManagedClusterAddOn
	for _, cluster := range clusters {
		addOn = s.runs(cluster, hash)
		require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn))
		addOn.Finalizers = []string{"example.com/others"}
		require.NoError(t, s.Update(t.Context(), addOn))
		require.NoError(t, s.Delete(t.Context(), addOn))
	}
	s.level("two")
	assert.ElementsMatch(t, clusters, s.deletes(s.stored()[0]), "none is better than another one")
	next := s.enqueued(func(q queue) { notes.Delete(t.Context(), event.DeleteEvent{Object: addOn}, q) })
	assert.Len(t, next, 1, "or each that goes would wake all that are left")
}

// The cluster that has the pass takes the next content between the deletion and its pass.
//
// Shows: hub/stored-again
func TestAContentOfAnotherClusterIsStoredAgainBesideTheNextOne(t *testing.T) {
	s := newStoring(t)
	one := s.level("one")
	next := s.runs("c1", one)
	s.runs("c2", one)
	before := s.stored()[0]
	two := s.level("two")
	require.Equal(t, []string{"c1"}, s.deletes(before), "c2 has no pass")
	next.Status.ConfigReferences = fixture.AddOn("c1", fixture.Has(s.config, two)).Status.ConfigReferences
	_, err := s.c.Configure(t.Context(), next)
	require.NoError(t, err)
	assert.True(t, s.isStored(before))
}

// A cache shows what was stored a moment after that, and nothing watches for contents that come.
func TestAPassGoesOnWithTheContentThatItStoresAgain(t *testing.T) {
	s := newStoring(t)
	addOn := s.runs("c1", s.level("one"))
	s.prunes() // as by kubectl delete -k: the add-on goes with its configuration
	one := s.stored()[0]
	for _, revision := range s.stored() {
		if revision.CreationTimestamp.Before(&one.CreationTimestamp) {
			one = revision
		}
	}
	require.Equal(t, []string{"c1"}, s.deletes(one))
	addOn.DeletionTimestamp = new(metav1.NewTime(fixture.Noon())) // and its pre-delete hook has to be rendered
	behind := interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*appsv1.ControllerRevision); is && key.Name == one.Name {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "controllerrevisions"}, key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	s.c.Store.Client = behind
	result, err := s.c.Configure(t.Context(), addOn)
	require.NoError(t, err)
	require.True(t, s.isStored(one), "it is stored again")
	s.c.Store.Client = s.WithWatch // the cache has it now: no event of the add-on comes
	if addon.IsNotReady(result.Err) {
		assert.False(t, result.Recheck.IsZero(), "nobody looks again, although %v", result.Err)
	}
}

// A tool takes the labels of a stored content away, by which the cache selects.
func TestAContentWhoseLabelsAreTakenAwayIsReplaced(t *testing.T) {
	s := newStoring(t)
	addOn := s.runs("c1", s.level("one"))
	one := s.stored()[0]
	s.prunes()
	was := one.DeepCopy()
	one.Labels = nil
	require.NoError(t, s.Update(t.Context(), &one))
	s.c.Store.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{ // as the cache selects
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if revision, is := o.(*appsv1.ControllerRevision); is && err == nil && len(revision.Labels) == 0 {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "controllerrevisions"}, key.Name)
			}
			return err
		},
	})
	require.Len(t, s.enqueued(func(q queue) { s.c.storesAgain(t.Context(), event.DeleteEvent{Object: was}, q) }), 1)
	addOn.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
	var result addon.Configuration
	for range 3 {
		var err error
		result, err = s.c.Configure(t.Context(), addOn)
		require.NoError(t, err)
	}
	require.NoError(t, result.Err)
	require.Len(t, s.stored(), 1)
	assert.Equal(t, was.Labels, s.stored()[0].Labels)
}

// A hub manager starts with an API server that has not seen the last edit of a configuration. The status of the add-on
// says of which generation its content is.
//
// Shows: hub/generation-behind
func TestACacheThatIsBehindDoesNotBringBackAnEarlierContent(t *testing.T) {
	for sentence, created := range map[string]bool{"the cache is behind": false, "the configuration was created again": true} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			one := s.level("one")
			two := s.level("two")
			addOn := s.runs("c1", two)
			addOn.Status.ConfigReferences[0].LastObservedGeneration = 2
			live := s.WithWatch
			if !created {
				var own addonv1beta1.AddOnDeploymentConfig
				require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "own"}, &own))
				live = fake.NewClientBuilder().WithScheme(s.Scheme()).WithObjects(&own).Build()
			}
			require.Equal(t, one, s.level("one"))
			asked := 0
			s.c.Store.Live = interceptor.NewClient(live, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					asked++
					return c.List(ctx, list)
				},
			})
			for range 3 {
				result, err := s.c.Configure(t.Context(), addOn)
				if !created {
					require.ErrorContains(t, err, "does not have its latest version yet")
					continue
				}
				require.NoError(t, err)
				assert.Equal(t, one, result.Choice.Configs[0].SpecHash)
			}
			if created {
				assert.Equal(t, 1, asked)
			}
		})
	}
}

// The add-on that is to store a content again goes before its pass, which asks no Configurer then.
//
// Shows: hub/stored-again
func TestAnotherAddOnStoresAgainWhenTheOneThatWasToGoes(t *testing.T) {
	s := newStoring(t)
	one := s.level("one")
	gone := s.runs("c1", one)
	s.runs("c2", one)
	before := s.stored()[0]
	s.level("two") // c2 waits for its turn
	notes := s.c.notesAddOns()
	next := func() []string {
		return s.enqueued(func(q queue) { notes.Delete(t.Context(), event.DeleteEvent{Object: gone}, q) })
	}
	require.Empty(t, next(), "nothing is lost")
	require.Equal(t, []string{"c1"}, s.deletes(before), "c2 has no pass")
	require.NoError(t, s.Delete(t.Context(), gone.DeepCopy()))
	require.Equal(t, []string{"c2"}, next())
	var other addonv1beta1.ManagedClusterAddOn
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: "c2", Name: "hello"}, &other))
	_, err := s.c.Configure(t.Context(), &other)
	require.NoError(t, err)
	assert.True(t, s.isStored(before))
	require.Empty(t, next(), "it is stored")
}

// A quota refuses ControllerRevisions for two minutes. Nothing watches for its end.
func TestAContentThatCannotBeStoredIsToldToTheCaller(t *testing.T) {
	for sentence, tc := range map[string]struct{ lost, orphaned bool }{
		"a new one": {}, "one that was lost": {lost: true},
		"one that was lost, and there is no ClusterManagementAddOn": {lost: true, orphaned: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			hash := s.level("one")
			addOn := fixture.AddOn("c1")
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{s.config}
			if tc.lost {
				addOn = s.runs("c1", hash)
				require.Equal(t, []string{"c1"}, s.deletes(s.stored()[0]))
			}
			if tc.orphaned {
				require.NoError(t, s.Delete(t.Context(), &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}))
			}
			s.refused = quota()
			result, err := s.c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.ErrorContains(t, result.Unstored, "exceeded quota")
			s.refused = nil
			result, err = s.c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.NoError(t, result.Unstored)
			assert.Len(t, s.stored(), 1)
		})
	}
}
