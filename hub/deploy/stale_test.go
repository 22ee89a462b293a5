package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: hub/gone-behind
func TestNothingIsMadeAgainForAnAddOnThatIsGone(t *testing.T) {
	binds := plan{bindings: []bindingStep{{Verb: reconcile.Keep}, {Verb: reconcile.Create, After: &rbacv1.RoleBinding{}}}}
	deploys := plan{works: []workStep{{Verb: reconcile.Create, After: &workv1.ManifestWork{}}}}
	deleted := metav1.Now()
	tests := map[string]struct {
		plan plan
		had  string
		live *metav1.ObjectMeta
		want bool
	}{
		"its bindings are made again, and it is there": {binds, "RegistrationApplied", &metav1.ObjectMeta{UID: "u"}, false},
		"its bindings are made again, and it is gone":  {binds, "RegistrationApplied", nil, true},
		"its works are made again, and it is gone":     {deploys, "ManifestApplied", nil, true},
		"another add-on has the name":                  {deploys, "ManifestApplied", &metav1.ObjectMeta{UID: "v"}, true},
		"it is being deleted": {
			binds, "RegistrationApplied", &metav1.ObjectMeta{UID: "u", DeletionTimestamp: &deleted, Finalizers: []string{"a/b"}}, true,
		},
		"nothing is read for the first bindings":   {binds, "ManifestApplied", nil, false},
		"nothing is read for the first works":      {deploys, "RegistrationApplied", nil, false},
		"nothing is read where nothing is created": {plan{bindings: binds.bindings[:1]}, "RegistrationApplied", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.live != nil {
				tc.live.Namespace, tc.live.Name = "c1", "a"
				builder.WithObjects(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: *tc.live})
			}
			c := builder.Build()
			r, c1 := &Reconciler{Live: c, AddOns: addonapi.Client{Client: c}}, clusterThatIs("c1", true)
			r.accepts.note(c1)
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
			addOn.Status.Conditions = []metav1.Condition{{Type: tc.had, Status: metav1.ConditionTrue}}
			stale, err := isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, tc.plan))
			require.NoError(t, err)
			assert.Equal(t, tc.want, stale)
		})
	}
}

// A cluster is deselected right after an add-on came to it: the status in the cache does not say yet that anything was
// made. What the garbage collector took was made again without a pause.
// Shows: hub/gone-behind
func TestNothingIsMadeAgainForAnAddOnThatIsGoneBeforeItsStatusSaysAnything(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	live := fake.NewClientBuilder().WithScheme(scheme).Build()
	r, c1 := &Reconciler{Live: live, AddOns: addonapi.Client{Client: live}}, clusterThatIs("c1", true)
	r.accepts.note(c1)
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
	binds := plan{bindings: []bindingStep{{Verb: reconcile.Create, After: &rbacv1.RoleBinding{}}}}
	deploys := plan{works: []workStep{{Verb: reconcile.Create, After: &workv1.ManifestWork{}}}}
	stale := func(p plan) bool {
		t.Helper()
		is, err := isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, p))
		require.NoError(t, err)
		return is
	}
	assert.False(t, stale(binds), "nothing is read for the first bindings")
	assert.False(t, stale(deploys), "nor for the first works")
	assert.True(t, stale(binds), "they are made again")
	assert.True(t, stale(deploys))
	addOn.UID = "v"
	assert.False(t, stale(deploys), "another add-on")
	r.made.Forget(client.ObjectKeyFromObject(addOn))
	assert.False(t, stale(deploys), "this process has forgotten it")
	addOn.Status.Conditions = []metav1.Condition{{Type: "ManifestApplied", Status: metav1.ConditionTrue}}
	assert.False(t, stale(plan{}))
	assert.Zero(t, r.made.Len(), "its status says it")
}

// A hub manager starts with an API server that is behind: it shows what the add-on had before. While it keeps what it has,
// because no placement selects its cluster, nothing may be put back.
// Shows: invariants/never-back
func TestAnAddOnThatKeepsItsConfigurationIsNotPutBackByAnEarlierStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	with := func(hash string) []addonv1beta1.ConfigReference {
		return fixture.AddOn("c1", fixture.Desires(fixture.Template("t"), hash)).Status.ConfigReferences
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
	addOn.Status.ConfigReferences = with("new")
	addOn.Status.Conditions = []metav1.Condition{{
		Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
	}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(addonapi.AddOnToAlpha(addOn)).Build()
	r := &Reconciler{Live: live, AddOns: addonapi.Client{Client: live}}
	work := func(hash string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{names.AnnotationConfigSpecHash: hash},
		}}
	}
	for sentence, tc := range map[string]struct {
		cached string
		held   string
		before string // empty where the work was deleted
		want   bool
	}{
		"its cache is behind, and a user deleted its work": {cached: "old", held: "nobody selects it", want: true},
		"its cache is behind":                              {cached: "old", held: "nobody selects it", before: "new", want: true},
		"its work was changed by another client":           {cached: "new", held: "nobody selects it", before: "other"},
		"its work has what the cache shows":                {cached: "old", held: "nobody selects it", before: "old"},
		"it gets another configuration":                    {cached: "old", before: "new"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{addOn: addOn.DeepCopy(), configuration: addon.Configuration{Choice: addon.Choice{Held: tc.held}}}
			f.addOn.Status.ConfigReferences = with(tc.cached)
			step := workStep{Verb: reconcile.Patch, Before: work(tc.before), After: work(tc.cached)}
			if tc.before == "" {
				step = workStep{Verb: reconcile.Create, After: work(tc.cached)}
			}
			stale, err := isStale(r.stale(t.Context(), f, plan{works: []workStep{step}}))
			require.NoError(t, err)
			assert.Equal(t, tc.want, stale)
		})
	}
}

// Shows: hub/hook-once
func TestAHookDoesNotRunAgainAfterItsFinalizerIsGone(t *testing.T) {
	creates := []workStep{{Verb: reconcile.Create, After: &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "host", Name: "addon-a-pre-delete-hosting-c1"},
	}}}
	tests := map[string]struct {
		steps      []workStep
		uid        types.UID
		finalizers []string
		record     string
		gone       bool
		want       bool
	}{
		"the finalizer is there":            {steps: creates, uid: "u", finalizers: []string{finalizerHostedHook}},
		"the finalizer is gone":             {steps: creates, uid: "u", finalizers: []string{"example.com/other"}, want: true},
		"it was recorded that it is done":   {steps: creates, uid: "u", finalizers: []string{finalizerHook}, record: "{}", want: true},
		"the add-on is gone":                {steps: creates, gone: true, want: true},
		"another add-on has the name":       {steps: creates, uid: "v", finalizers: []string{finalizerHook}, want: true},
		"nothing is read to create nothing": {gone: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if !tc.gone {
				builder.WithObjects(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
					Namespace: "c1", Name: "a", UID: tc.uid, Finalizers: tc.finalizers,
					Annotations: map[string]string{names.AnnotationHookAttempts: tc.record},
				}})
			}
			var c client.Client = builder.Build()
			r := &Reconciler{Live: c, AddOns: addonapi.Client{Client: c}}
			f := deletionFacts{facts: facts{addOn: &addonv1beta1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u", Finalizers: []string{finalizerHostedHook}},
			}}}
			stale, err := isStale(r.deletionStale(t.Context(), f, deletionPlan{works: tc.steps}))
			require.NoError(t, err)
			assert.Equal(t, tc.want, stale)
		})
	}
}

// An add-on has works of which its cluster refuses a manifest, so its status does not say that all of them are applied.
// The add-on goes, and the garbage collector takes its works; the cache does not show yet that it is gone.
func TestNothingIsMadeAgainForAnAddOnThatIsGoneAndWasNotWell(t *testing.T) {
	deploys := plan{works: []workStep{{Verb: reconcile.Create, After: &workv1.ManifestWork{}}}}
	for sentence, condition := range map[string]metav1.Condition{
		"its works are applied": {
			Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
			Reason: addonv1beta1.AddonManifestAppliedReasonManifestsApplied,
		},
		"its cluster refuses a manifest of its works": {
			Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionFalse,
			Reason: addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			live := fake.NewClientBuilder().WithScheme(scheme).Build()
			r, c1 := &Reconciler{Live: live, AddOns: addonapi.Client{Client: live}}, clusterThatIs("c1", true)
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
			// This process made its works, and saw that they are applied, before the cluster refused one.
			_, err := isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, deploys))
			require.NoError(t, err)
			addOn.Status.Conditions = []metav1.Condition{{
				Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
			}}
			_, err = isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, plan{}))
			require.NoError(t, err)
			addOn.Status.Conditions = []metav1.Condition{condition}
			_, err = isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, plan{}))
			require.NoError(t, err)
			stale, err := isStale(r.stale(t.Context(), facts{addOn: addOn, cluster: c1}, deploys))
			require.NoError(t, err)
			assert.True(t, stale, "its works are made again for an add-on that is gone")
		})
	}
}
