package cluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// noon is when all tests take place.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// settledFacts are those of a cluster that has all it shall have.
func settledFacts() facts {
	renewed := metav1.NewMicroTime(noon())
	labels := map[string]string{names.LabelClusterName: "c1"}
	f := facts{
		name: "c1", now: noon(),
		cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{
				Name: "c1", Finalizers: []string{names.FinalizerCluster},
				Labels:      map[string]string{"cluster.open-cluster-management.io/clusterset": "default"},
				Annotations: map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"},
			},
			Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
		},
		namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: labels}},
		have:      renderGrants("c1", true),
		shared:    map[string]*rbacv1.ClusterRole{},
		lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "managed-cluster-lease", Namespace: "c1", Labels: labels},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
		},
	}
	for _, role := range sharedRoles() {
		f.shared[role.Name] = role
	}
	f.cluster.Status.Conditions = []metav1.Condition{
		condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, reasonAccepted, noon()),
		condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "ManagedClusterAvailable", noon()),
	}
	return f
}

// Shows: registration/labels-of-clusters
func TestWhatBelongsToAClusterGetsFurtherLabels(t *testing.T) {
	f := settledFacts()
	require.Empty(t, slices.Concat(steps(decide(f))...))
	f.labels = map[string]string{"team": "edge", names.LabelClusterName: "other"}
	p := decide(f)
	labelled := 0
	for _, stage := range p.stages {
		for _, s := range stage {
			require.Equal(t, reconcile.Patch, s.Verb)
			assert.Equal(t, "edge", s.After.GetLabels()["team"], "%T", s.After)
			assert.Equal(t, s.Before.GetLabels()[names.LabelClusterName], s.After.GetLabels()[names.LabelClusterName], "%T", s.After)
			labelled++
		}
	}
	assert.Equal(t, 7, labelled, "the namespace, the two shared roles, the role and three bindings")
	delete(f.labels, names.LabelClusterName)
	f.namespace, f.have, f.shared = nil, grants{}, map[string]*rbacv1.ClusterRole{}
	for _, s := range slices.Concat(decide(f).stages...) {
		assert.Equal(t, "edge", s.After.GetLabels()["team"], "%T", s.After)
	}
}

func condition(kind string, status metav1.ConditionStatus, reason string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
}

func deletedAt() *metav1.Time { at := metav1.NewTime(noon()); return &at }

// steps lists the steps of a plan in order: "create *v1.ClusterRole c1", one list per stage.
func steps(p plan) [][]string {
	var all [][]string
	for _, stage := range p.stages {
		var list []string
		for _, s := range stage {
			list = append(list, fmt.Sprintf("%s %T %s", s.Verb, s.Object(), s.Object().GetName()))
		}
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	return all
}

// Shows: registration/acceptance-states
func TestASettledClusterNeedsNothing(t *testing.T) {
	p := decide(settledFacts())
	assert.Empty(t, steps(p))
	assert.Nil(t, p.cluster)
	assert.Equal(t, noon().Add(5*time.Minute), p.wake, "the next look is at the expiry of the lease")
}

// Shows: registration/acceptance-states
func TestANewlyAcceptedClusterGetsAllInOrder(t *testing.T) {
	f := settledFacts()
	f.cluster.Finalizers, f.cluster.Status = nil, clusterv1.ManagedClusterStatus{}
	f.namespace, f.have, f.shared, f.lease = nil, grants{}, nil, nil
	p := decide(f)
	require.NotNil(t, p.cluster)
	assert.Equal(t, []string{names.FinalizerCluster}, p.cluster.Finalizers)
	assert.Equal(t, [][]string{
		{"create *v1.Namespace c1"},
		{
			"create *v1.ClusterRole open-cluster-management:managedcluster:registration",
			"create *v1.ClusterRole open-cluster-management:managedcluster:work",
			"create *v1.ClusterRole open-cluster-management:managedcluster:c1",
			"create *v1.ClusterRoleBinding open-cluster-management:managedcluster:c1",
			"create *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
			"create *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
			"create *v1.Lease managed-cluster-lease",
		},
	}, steps(p))
}

func TestDriftIsRepairedObjectByObject(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   []string
	}{
		"a rule more in the role": {
			func(f *facts) { f.have.role.Rules = append(f.have.role.Rules, rule("", "secrets", "get")) },
			[]string{"patch *v1.ClusterRole open-cluster-management:managedcluster:c1"},
		},
		"a role that aggregates others": {
			func(f *facts) { f.have.role.AggregationRule = &rbacv1.AggregationRule{} },
			[]string{"patch *v1.ClusterRole open-cluster-management:managedcluster:c1"},
		},
		"a subject more in a binding": {
			func(f *facts) { f.have.work.Subjects = append(f.have.work.Subjects, rbacv1.Subject{Name: "x"}) },
			[]string{"patch *v1.RoleBinding open-cluster-management:managedcluster:c1:work"},
		},
		"a finalizer less on the binding for works": {
			func(f *facts) { f.have.work.Finalizers = nil },
			[]string{"patch *v1.RoleBinding open-cluster-management:managedcluster:c1:work"},
		},
		"a binding of another role": {
			func(f *facts) { f.have.registration.RoleRef.Name = "cluster-admin" },
			[]string{
				"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
				"create *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
			},
		},
		"a cluster binding of another role": {
			func(f *facts) { f.have.binding.RoleRef.Name = "cluster-admin" },
			[]string{
				"delete *v1.ClusterRoleBinding open-cluster-management:managedcluster:c1",
				"create *v1.ClusterRoleBinding open-cluster-management:managedcluster:c1",
			},
		},
		"a binding for works that lingers from a denial": {
			func(f *facts) { f.have.work.DeletionTimestamp = deletedAt() },
			[]string{
				"patch *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
				"create *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
			},
		},
		"a namespace with the label that people of OCM set": {
			func(f *facts) { f.namespace.Labels = map[string]string{names.LabelOCMCluster: "c1"} },
			[]string{"patch *v1.PartialObjectMetadata c1"},
		},
		"a lease without label": {
			func(f *facts) { f.lease.Labels = nil },
			[]string{"patch *v1.Lease managed-cluster-lease"},
		},
		"a missing shared role": {
			func(f *facts) { delete(f.shared, roleWork) },
			[]string{"create *v1.ClusterRole open-cluster-management:managedcluster:work"},
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			tc.change(&f)
			assert.Equal(t, [][]string{tc.want}, steps(decide(f)))
		})
	}
}

func TestANamespaceOfAnotherPurposeIsNotMadeThatOfACluster(t *testing.T) {
	f := settledFacts()
	f.namespace.Labels, f.have = nil, grants{}
	p := decide(f)
	assert.Empty(t, steps(p))
	require.ErrorContains(t, p.blocked, "kubectl label namespace c1 open-cluster-management.io/cluster-name=c1")
}

func TestANamespaceThatIsGoingIsWaitedFor(t *testing.T) {
	f := settledFacts()
	f.namespace.DeletionTimestamp = deletedAt()
	p := decide(f)
	assert.Empty(t, steps(p))
	require.ErrorContains(t, p.blocked, "namespace c1 is being deleted")
	got := conditions(f, p, nil)
	require.Len(t, got, 1)
	assert.Equal(t, reasonError, got[0].Reason)
}

// Shows: registration/acceptance-states
func TestADeniedCluster(t *testing.T) {
	denied := func() facts {
		f := settledFacts()
		f.cluster.Spec.HubAcceptsClient = false
		f.namespace.Annotations = map[string]string{names.AnnotationDeniedOn: "2026-03-01T11:00:00Z"}
		return f
	}
	t.Run("keeps its access to works while there are some", func(t *testing.T) {
		f := denied()
		f.works = []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Name: "w"}}}
		p := decide(f)
		assert.Equal(t, [][]string{{
			"patch *v1.ClusterRole open-cluster-management:managedcluster:c1",
			"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
			"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
		}}, steps(p))
		c := conditions(f, p, nil)[0]
		assert.Equal(t, reasonDenied, c.Reason)
		assert.Contains(t, c.Message, "1 ManifestWork (w)")
	})
	t.Run("loses it when the server says that none is left", func(t *testing.T) {
		f := denied()
		f.have.registration, f.have.role = nil, renderGrants("c1", false).role
		f.have.work.DeletionTimestamp = deletedAt()
		f.live = &live{}
		p := decide(f)
		assert.Equal(t, [][]string{{"patch *v1.RoleBinding open-cluster-management:managedcluster:c1:work"}}, steps(p))
		assert.Empty(t, p.stages[0][0].Object().GetFinalizers())
		assert.Equal(t, "Denied by hub cluster admin", conditions(f, p, nil)[0].Message)
	})
	for sentence, answer := range map[string]*live{
		"keeps it while the server was not asked":         nil,
		"keeps it when the server could not be asked":     {err: errors.New("down")},
		"keeps it when the server knows one we don't see": {works: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := denied()
			f.have.registration, f.have.role = nil, renderGrants("c1", false).role
			f.have.work.DeletionTimestamp = deletedAt()
			f.live = answer
			assert.Empty(t, steps(decide(f)))
		})
	}
}

func TestAClusterThatWasNeverAcceptedLosesWhatIsLeftOfAnEarlierOne(t *testing.T) {
	f := settledFacts()
	f.cluster.Spec.HubAcceptsClient, f.cluster.Status.Conditions, f.cluster.Annotations = false, nil, nil
	p := decide(f)
	assert.Equal(t, phaseNew, p.phase)
	assert.Len(t, slices.Concat(steps(p)...), 4)
	assert.Empty(t, conditions(f, p, nil))
}

func TestTheSharedRolesAreNeverRemovedWithACluster(t *testing.T) {
	for _, role := range sharedRoles() {
		f := facts{name: role.Name[len(rolePrefix):], now: noon(), have: grants{role: role}}
		assert.Empty(t, steps(decide(f)))
	}
}

// Shows: registration/acceptance-states, registration/clean-up-decided
func TestADeletedClusterIsTakenApartInOrder(t *testing.T) {
	leaving := func(change func(*facts)) facts {
		f := settledFacts()
		f.cluster.DeletionTimestamp = deletedAt()
		change(&f)
		return f
	}
	addon := func(name, priority string) *addonv1beta1.ManagedClusterAddOn {
		return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{clusterv1.CleanupPriorityAnnotationKey: priority},
		}}
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	tests := map[string]struct {
		f         facts
		want      [][]string
		remaining string
		reason    string
	}{
		"add-ons of the lowest priority go first": {
			f: leaving(func(f *facts) {
				f.addons = []*addonv1beta1.ManagedClusterAddOn{addon("b", "5"), addon("a", ""), addon("z", "101")}
				f.works = []*workv1.ManifestWork{work}
			}),
			want:      [][]string{{"delete *v1beta1.ManagedClusterAddOn a", "delete *v1beta1.ManagedClusterAddOn z"}},
			remaining: "3 ManagedClusterAddOns (a, b, z), then 1 ManifestWork (w)", reason: "ResourceRemaining",
		},
		"an add-on that is going is waited for": {
			f: leaving(func(f *facts) {
				going := addon("a", "")
				going.DeletionTimestamp = deletedAt()
				f.addons = []*addonv1beta1.ManagedClusterAddOn{going, addon("b", "5")}
			}),
			remaining: "2 ManagedClusterAddOns (a, b)", reason: "ResourceRemaining",
		},
		"works go when add-ons are gone": {
			f:         leaving(func(f *facts) { f.works, f.live = []*workv1.ManifestWork{work}, &live{} }),
			want:      [][]string{{"delete *v1.ManifestWork w"}},
			remaining: "1 ManifestWork (w)", reason: "ResourceRemaining",
		},
		"works stay when the server could not be asked for add-ons": {
			f:         leaving(func(f *facts) { f.works, f.live = []*workv1.ManifestWork{work}, &live{err: errors.New("down")} }),
			remaining: "1 ManifestWork (w)", reason: "DeletingError",
		},
		"a work that only the server shows is waited for": {
			f:         leaving(func(f *facts) { f.live = &live{works: true} }),
			remaining: "a ManifestWork that was created a moment ago", reason: "ResourceRemaining",
		},
		"an add-on that only the server shows is waited for": {
			f:         leaving(func(f *facts) { f.live = &live{addons: true} }),
			remaining: "a ManagedClusterAddOn that was created a moment ago", reason: "ResourceRemaining",
		},
		"a server that does not answer keeps everything": {
			f:      leaving(func(f *facts) { f.live = &live{err: errors.New("down")} }),
			reason: "DeletingError",
		},
		"access and lease go last": {
			f: leaving(func(f *facts) { f.live = &live{} }),
			want: [][]string{{
				"delete *v1.ClusterRoleBinding open-cluster-management:managedcluster:c1",
				"delete *v1.ClusterRole open-cluster-management:managedcluster:c1",
				"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
				"patch *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
				"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
				"delete *v1.Lease managed-cluster-lease",
			}},
			reason: "NoResource",
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			p := decide(tc.f)
			assert.Equal(t, tc.want, steps(p))
			assert.Equal(t, tc.remaining, p.remaining)
			assert.Nil(t, p.cluster, "the finalizer stays")
			assert.Equal(t, tc.reason, conditions(tc.f, p, nil)[0].Reason)
		})
	}
	t.Run("what an agent says is left stands for nothing", func(t *testing.T) {
		says := func(f *facts) {
			f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
				condition(clusterv1.ManagedClusterConditionDeleting, metav1.ConditionTrue, "NoResource", noon()))
		}
		p := decide(leaving(says))
		assert.Nil(t, p.cluster, "the API server was not asked")
		assert.Empty(t, steps(p))
		p = decide(leaving(func(f *facts) { says(f); f.live = &live{works: true} }))
		assert.Nil(t, p.cluster)
		p = decide(leaving(func(f *facts) { says(f); f.live = &live{} }))
		assert.NotNil(t, p.cluster)
		assert.Contains(t, steps(p)[0], "delete *v1.ClusterRoleBinding open-cluster-management:managedcluster:c1",
			"its access goes before the finalizer, which the agent can keep from being written")
	})
	t.Run("a denial takes what it takes while something is left", func(t *testing.T) {
		f := leaving(func(f *facts) {
			f.works, f.live = []*workv1.ManifestWork{work}, &live{}
			f.cluster.Spec.HubAcceptsClient = false
			metav1.SetMetaDataAnnotation(&f.namespace.ObjectMeta, names.AnnotationDeniedOn, "2026-11-20T12:00:00Z")
		})
		p := decide(f)
		assert.Equal(t, [][]string{{
			"patch *v1.ClusterRole open-cluster-management:managedcluster:c1",
			"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:registration",
			"delete *v1.RoleBinding open-cluster-management:managedcluster:c1:work",
			"delete *v1.ManifestWork w",
		}}, steps(p))
		f.have, f.live = grants{}, nil
		assert.Empty(t, steps(decide(f)), "nothing is made for it")
	})
	t.Run("the finalizers go when that was told", func(t *testing.T) {
		f := leaving(func(f *facts) {
			f.live = &live{}
			f.cluster.Finalizers = append(f.cluster.Finalizers, finalizerGC, "example.com/mine")
			f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
				condition(clusterv1.ManagedClusterConditionDeleting, metav1.ConditionTrue, "NoResource", noon()))
		})
		p := decide(f)
		require.NotNil(t, p.cluster)
		assert.Equal(t, []string{"example.com/mine"}, p.cluster.Finalizers)
	})
	t.Run("a failure is told and nothing is said to be gone", func(t *testing.T) {
		f := leaving(func(f *facts) { f.live = &live{} })
		c := conditions(f, decide(f), errors.New("boom"))[0]
		assert.Equal(t, "DeletingError", c.Reason)
		assert.Equal(t, metav1.ConditionFalse, c.Status)
	})
}

func TestWhatTurnsAnAcceptedClusterIntoOneThatIsNot(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("newer"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	down := errors.New("connection refused")
	tests := map[string]struct {
		accepted bool
		failed   error
		want     string
	}{
		"nothing when all is well":                {true, nil, reasonAccepted},
		"not a lost race":                         {true, fmt.Errorf("patching: %w", conflict), ""},
		"not a server that is down":               {true, down, ""},
		"a right that the hub manager lacks":      {true, errors.Join(down, forbidden), reasonError},
		"not yet accepted, the server being down": {false, down, reasonError},
		"not yet accepted, and a race was lost":   {false, conflict, ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			if !tc.accepted {
				f.cluster.Status.Conditions = nil
			}
			got := acceptance(f, decide(f), tc.failed)
			if tc.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Equal(t, tc.want, got[0].Reason)
		})
	}
}

// Shows: registration/shared-roles
func TestTheSharedRolesLiveAsLongAsThereIsACluster(t *testing.T) {
	have := settledFacts().shared
	assert.Empty(t, decideShared(have, true))
	assert.Len(t, decideShared(nil, true), 2)
	assert.Len(t, decideShared(have, false), 2)
	assert.Empty(t, decideShared(nil, false))
}

func TestConcludeKeepsTheConditionsOfOthers(t *testing.T) {
	f := settledFacts()
	f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
		condition("ManagedClusterJoined", metav1.ConditionTrue, "ManagedClusterJoined", noon()))
	status := conclude(f, decide(f), nil, f.cluster).Status
	assert.NotNil(t, meta.FindStatusCondition(status.Conditions, "ManagedClusterJoined"))
	assert.Equal(t, "ManagedClusterAvailable",
		meta.FindStatusCondition(status.Conditions, clusterv1.ManagedClusterConditionAvailable).Reason)
}
