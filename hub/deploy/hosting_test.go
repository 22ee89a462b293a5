package deploy

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: hub/hosting-cluster-judged
func TestTheHostingClusterIsJudged(t *testing.T) {
	accepted := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	deleting := accepted.DeepCopy()
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		annotation string
		host       *clusterv1.ManagedCluster
		status     metav1.ConditionStatus // empty: there is no condition
		reason     string                 // empty: as OCM's
		says       []string
	}{
		"no hosting cluster is named": {},
		"it does not exist": {annotation: "host", status: metav1.ConditionFalse, says: []string{
			`There is no ManagedCluster "host"`, names.AnnotationHostingCluster, "Correct the annotation, or register that cluster."}},
		"it is not accepted": {annotation: "host", host: &clusterv1.ManagedCluster{}, status: metav1.ConditionFalse,
			says: []string{"The hub does not accept cluster host", "Set spec.hubAcceptsClient of the ManagedCluster to true"}},
		"it does not consent": {annotation: "host", host: listing(accepted, "c2"), status: metav1.ConditionFalse, reason: "NotConsented",
			says: []string{"does not consent to host add-ons of cluster c1", "kubectl annotate managedcluster host --overwrite addon.spokelet.io/hosts=c2,c1"}},
		"it consents": {annotation: "host", host: listing(accepted, "c1"), status: metav1.ConditionTrue, says: []string{"host"}},
		"it is on its way out": {annotation: "host", host: deleting, status: metav1.ConditionFalse,
			says: []string{"is being deleted. Name another one."}},
		"it is good": {annotation: "host", host: accepted, status: metav1.ConditionTrue, says: []string{"host"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{host: tc.host, addOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1"}}}
			if tc.annotation != "" {
				f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: tc.annotation}
			}
			conditions := []metav1.Condition{{Type: "HostingClusterValidity", Status: metav1.ConditionFalse}}
			var set *metav1.Condition
			concludeHost(f, &conditions, func(c metav1.Condition) { set = &c })
			if tc.status == "" {
				assert.Nil(t, set)
				assert.Empty(t, conditions, "the condition goes with the annotation")
				return
			}
			require.NotNil(t, set)
			assert.Equal(t, "HostingClusterValidity", set.Type)
			assert.Equal(t, tc.status, set.Status)
			want := "HostingClusterInvalid"
			if tc.status == metav1.ConditionTrue {
				want = "HostingClusterValid"
			}
			assert.Equal(t, cmp.Or(tc.reason, want), set.Reason)
			for _, text := range tc.says {
				assert.Contains(t, set.Message, text)
			}
		})
	}
}

// listing returns a cluster that hosts add-ons of others.
func listing(host *clusterv1.ManagedCluster, clusters string) *clusterv1.ManagedCluster {
	host = host.DeepCopy()
	host.Name, host.Annotations = "host", map[string]string{names.AnnotationHosts: clusters}
	return host
}

// Shows: security/not-accepted-gets-nothing
func TestNothingIsDeployedForAClusterThatIsNotAccepted(t *testing.T) {
	before, _ := simulate(t, factsOf(configMap("here", 1)))
	f := factsOf(configMap("here", 2))
	f.works, f.setup = before.works, addon.Setup{Health: addon.HealthWorkloads, Permissions: []addon.Permission{{
		Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "any"},
	}}}
	require.NotEmpty(t, decide(f).works)
	require.NotEmpty(t, decide(f).bindings)

	f.cluster.Spec.HubAcceptsClient = false
	p := decide(f)
	assert.Empty(t, p.works)
	assert.Empty(t, p.bindings)
	assert.Nil(t, p.finalizers)
	assert.Len(t, p.kept, 1, "what it has stays")
	after := conclude(f, p, results{})
	for _, kind := range []string{addonv1beta1.ManagedClusterAddOnManifestApplied, addonv1beta1.ManagedClusterAddOnRegistrationApplied} {
		condition := meta.FindStatusCondition(after.Status.Conditions, kind)
		require.NotNil(t, condition, kind)
		assert.Equal(t, metav1.ConditionFalse, condition.Status)
		assert.Contains(t, condition.Message, "the hub does not accept cluster c1")
	}
	assert.Equal(t, reconcile.Done(), outcomeOf(f, p, results{}, nil), "an event of the cluster starts the next pass")
}

func TestAHookIsNotStartedWhereItMayNotRun(t *testing.T) {
	hook := hookJob()
	hook.SetAnnotations(map[string]string{names.AnnotationPreDelete: "", names.AnnotationHostedLocation: "hosting"})
	facts := func(change func(*deletionFacts)) deletionFacts {
		f := leavingFacts(finalizerHostedHook)
		f.rendering.Objects = []*unstructured.Unstructured{hook}
		f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
		f.host = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "host"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		change(&f)
		return f
	}
	for sentence, tc := range map[string]struct {
		change  func(*deletionFacts)
		created int
		done    bool
	}{
		"it starts where all agree":              {change: func(*deletionFacts) {}, created: 1},
		"not for a cluster that is not accepted": {change: func(f *deletionFacts) { f.cluster.Spec.HubAcceptsClient = false }},
		"not on a host that is not accepted":     {change: func(f *deletionFacts) { f.host.Spec.HubAcceptsClient = false }},
		"not on a host that consents no more":    {change: func(f *deletionFacts) { f.host = listing(f.host, "") }},
		"a host that never ran it is not waited for": {change: func(f *deletionFacts) {
			f.host, f.addOn.Finalizers = listing(f.host, ""), []string{finalizerHook}
		}, done: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := decideDeletion(facts(tc.change))
			assert.Len(t, p.works, tc.created)
			assert.Equal(t, tc.done, len(p.drop) > 0)
			assert.False(t, p.skipped)
		})
	}
}

// Shows: security/host-records
func TestTheHostIsRecordedBeforeItsWorks(t *testing.T) {
	f := hostedFacts("h")
	p := decide(f)
	require.NotNil(t, p.hosts)
	assert.Equal(t, "h", *p.hosts)
	f.addOn = p.guarded(f.addOn)
	assert.Equal(t, "h", f.addOn.Annotations[names.AnnotationHostedOn])
	assert.Nil(t, decide(f).hosts)

	for sentence, host := range map[string]*clusterv1.ManagedCluster{
		"a host that does not consent": listing(f.host, ""), "a host that does not exist": nil,
	} {
		f := hostedFacts("h")
		f.host = host
		assert.Nil(t, decide(f).hosts, sentence)
	}
}
