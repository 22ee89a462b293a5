package deploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// hostedFacts is an add-on with one object on each side.
func hostedFacts(host string) facts {
	there := configMap("there", 1)
	there.SetAnnotations(map[string]string{names.AnnotationHostedLocation: "hosting"})
	f := factsOf(configMap("here", 1), there)
	f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: host}
	f.host = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: host}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	return f
}

// Shows: hub/hosting-cluster-changes
func TestWorksOnHostingClusters(t *testing.T) {
	old := func(names ...string) []*workv1.ManifestWork {
		var all []*workv1.ManifestWork
		for _, name := range names {
			all = append(all, hostingWork(name))
		}
		return all
	}
	const managed, hosted = "c1/addon-a-deploy-0", "addon-a-deploy-hosting-c1-0"
	tests := map[string]struct {
		facts  func() facts
		steps  map[string]reconcile.Verb
		guards []string
	}{
		"a work on each side": {
			facts: func() facts { return hostedFacts("h") },
			steps: map[string]reconcile.Verb{managed: reconcile.Create, "h/" + hosted: reconcile.Create}, guards: []string{finalizerHostedObjects},
		},
		"in default mode there is one side": {
			facts: func() facts { return hostedFacts("") },
			steps: map[string]reconcile.Verb{managed: reconcile.Create},
		},
		"default mode removes what hosted mode left": {
			facts: func() facts {
				f := hostedFacts("")
				f.works = old(hosted, "addon-a-deploy-hosting-c1-7")
				return f
			},
			steps: map[string]reconcile.Verb{
				managed: reconcile.Create, "host/" + hosted: reconcile.Delete, "host/addon-a-deploy-hosting-c1-7": reconcile.Delete,
			},
			guards: []string{finalizerHostedObjects},
		},
		"another hosting cluster": {
			facts: func() facts {
				f := hostedFacts("h")
				f.works = old(hosted)
				return f
			},
			steps: map[string]reconcile.Verb{
				managed: reconcile.Create, "h/" + hosted: reconcile.Create, "host/" + hosted: reconcile.Delete,
			},
			guards: []string{finalizerHostedObjects},
		},
		"a hosting cluster that does not exist": {
			facts: func() facts {
				f := hostedFacts("host")
				f.works, f.host = old(hosted), nil
				return f
			},
			steps:  map[string]reconcile.Verb{managed: reconcile.Create, "host/" + hosted: reconcile.Delete},
			guards: []string{finalizerHostedObjects},
		},
		"one that is being deleted": {
			facts: func() facts {
				f := hostedFacts("host")
				f.works, f.host.DeletionTimestamp = old(hosted), &metav1.Time{}
				f.host.DeletionTimestamp.Time = f.now
				return f
			},
			steps:  map[string]reconcile.Verb{managed: reconcile.Create, "host/" + hosted: reconcile.Delete},
			guards: []string{finalizerHostedObjects},
		},
		"one that is not accepted keeps its works": {
			facts: func() facts {
				f := hostedFacts("host")
				f.works, f.host.Spec.HubAcceptsClient = old(hosted), false
				return f
			},
			steps:  map[string]reconcile.Verb{managed: reconcile.Create},
			guards: []string{finalizerHostedObjects},
		},
		"one that does not consent keeps its works": {
			facts: func() facts {
				f := hostedFacts("host")
				f.works, f.host.Annotations = old(hosted), map[string]string{names.AnnotationHosts: "other"}
				return f
			},
			steps:  map[string]reconcile.Verb{managed: reconcile.Create},
			guards: []string{finalizerHostedObjects},
		},
		"one that never consented gets nothing": {
			facts: func() facts {
				f := hostedFacts("host")
				f.host.Annotations = map[string]string{names.AnnotationHosts: "other"}
				return f
			},
			steps: map[string]reconcile.Verb{managed: reconcile.Create},
		},
		"a work on the old cluster that is being deleted holds nothing": {
			facts: func() facts {
				f := hostedFacts("h")
				f.works = old(hosted)
				f.works[0].DeletionTimestamp = &metav1.Time{Time: f.now}
				return f
			},
			steps:  map[string]reconcile.Verb{managed: reconcile.Create, "h/" + hosted: reconcile.Create},
			guards: []string{finalizerHostedObjects},
		},
		"the managed cluster hosts": {
			facts:  func() facts { return hostedFacts("c1") },
			steps:  map[string]reconcile.Verb{managed: reconcile.Create, "c1/" + hosted: reconcile.Create},
			guards: []string{finalizerHostedObjects},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			p, err := planWorks(test.facts())
			require.NoError(t, err)
			steps := map[string]reconcile.Verb{}
			for _, s := range p.steps {
				steps[s.Object().Namespace+"/"+s.Object().Name] = s.Verb
			}
			assert.Equal(t, test.steps, steps)
			assert.Equal(t, test.guards, p.guards)
		})
	}
}

func TestTheWorksOfAHostThatIsTheManagedCluster(t *testing.T) {
	f, _ := simulate(t, hostedFacts("c1"))
	require.Len(t, f.works, 2)
	for _, work := range f.works {
		assert.NotEmpty(t, work.OwnerReferences, work.Name)
	}
	_, steps := simulate(t, f)
	assert.Empty(t, steps, "the two sides do not touch each other's works")

	// What moves from one side to the other stays until it is there.
	f.addOn.Annotations[names.AnnotationHostingCluster] = ""
	f, steps = simulate(t, f)
	assert.Len(t, steps, 2)
	assert.Equal(t, map[string][]string{
		"addon-a-deploy-0": {"here", "there"}, "addon-a-deploy-hosting-c1-0": {"there"},
	}, layout(f.works))
	for _, work := range f.works {
		work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue}}
	}
	f, _ = simulate(t, f)
	assert.Equal(t, map[string][]string{"addon-a-deploy-0": {"here", "there"}}, layout(f.works))
}

func TestWorksOfSomebodyElseOnAHostingClusterStay(t *testing.T) {
	f := hostedFacts("")
	other := hostingWork("addon-a-deploy-hosting-c1-0")
	other.Labels[names.LabelAddonNamespace] = "c2"
	mine := hostingWork("mine")
	f.works = []*workv1.ManifestWork{other, mine}
	p, err := planWorks(f)
	require.NoError(t, err)
	for _, s := range p.steps {
		assert.NotEqual(t, reconcile.Delete, s.Verb)
	}
}

// No record says whether the other side should have works, so a process renders once for an add-on in hosted mode, and
// then again when anything that it saw is different.
//
// Shows: hub/hosted-rendered-once
func TestAHostedAddOnIsRenderedOnceAndNotInEveryPass(t *testing.T) {
	for sentence, objects := range map[string]func(*facts){
		"with objects on both sides": func(*facts) {},
		"with objects on the hosting cluster only": func(f *facts) {
			f.rendering.Objects = f.rendering.Objects[1:]
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := hostedFacts("h")
			objects(&f)
			f.key = "k"
			f, renders, steps := pass(t, f, "v1")
			require.True(t, renders)
			require.Len(t, steps, len(f.rendering.Objects))
			f, renders, steps = pass(t, f, "v1")
			assert.True(t, renders)
			assert.Empty(t, steps)
			f, renders, _ = pass(t, f, "v1")
			require.False(t, renders, "what was rendered once stays")
			planned, err := planWorks(f)
			require.NoError(t, err)
			assert.Equal(t, planned.guards, currentWorks(f).guards)

			lost := f
			lost.works = slices.DeleteFunc(slices.Clone(f.works), func(w *workv1.ManifestWork) bool { return w.Namespace == "h" })
			_, renders, steps = pass(t, lost, "v1")
			assert.True(t, renders)
			assert.Len(t, steps, 1, "a work that was deleted is made again")

			moved := f
			moved.addOn = f.addOn.DeepCopy()
			moved.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: "other"}
			moved.host = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: f.host.Spec}
			_, renders, _ = pass(t, moved, "v1")
			assert.True(t, renders, "another host is another rendering")
		})
	}
}

// Shows: hub/hosting-differs
func TestAnAgentThatRunsElsewhere(t *testing.T) {
	for sentence, tc := range map[string]struct {
		claim    string
		deployed bool
		steps    int
		reason   string
		held     bool
	}{
		"the cluster does not say so":     {steps: 2, reason: "HostingClusterValid"},
		"it runs there":                   {claim: "h", steps: 2, reason: "HostingClusterValid"},
		"elsewhere, and nothing is there": {claim: "other", reason: "HostingClusterMismatch", held: true},
		"elsewhere, and all is there":     {claim: "other", deployed: true, steps: 2, reason: "HostingClusterMismatch"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := hostedFacts("h")
			if tc.claim != "" {
				f.cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: names.ClaimHostingCluster, Value: tc.claim}}
			}
			if tc.deployed {
				f.addOn.Finalizers = []string{finalizerHostedObjects}
			}
			p := decide(f)
			assert.Len(t, p.works, tc.steps)
			assert.Equal(t, tc.held, p.worksErr != nil)
			c := meta.FindStatusCondition(conclude(f, p, results{works: make([]error, len(p.works))}).Status.Conditions, "HostingClusterValidity")
			require.NotNil(t, c)
			assert.Equal(t, tc.reason, c.Reason)
			assert.Equal(t, tc.reason == "HostingClusterValid", c.Status == metav1.ConditionTrue)
		})
	}
}

// Shows: hub/hosting-found
func TestAnAddOnWaitsForTheHostingClusterThatItAsksFor(t *testing.T) {
	f := hostedFacts("")
	f.addOn.Annotations, f.host, f.pendingHost = map[string]string{names.AnnotationInstallMode: "Hosted"}, nil, "It is not known."
	p := decide(f)
	assert.Empty(t, p.works, "nothing is deployed on the managed cluster meanwhile")
	assert.False(t, p.renames)
	c := meta.FindStatusCondition(conclude(f, p, results{works: make([]error, len(p.works))}).Status.Conditions, "HostingClusterValidity")
	require.NotNil(t, c)
	assert.Equal(t, "False HostingClusterAutoDiscoveryPending It is not known.", string(c.Status)+" "+c.Reason+" "+c.Message)

	f.foundHost = "h"
	p = decide(f)
	assert.Empty(t, p.works, "the next pass deploys")
	require.True(t, p.renames)
	after := p.guarded(f.addOn)
	assert.Equal(t, "h auto-discovery", after.Annotations[names.AnnotationHostingCluster]+" "+after.Annotations[names.AnnotationHostManagedBy])
}
