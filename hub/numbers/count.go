package numbers

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// well is the code of what has no problem.
	well causes.Code = "well"
	// undefined is the name of all add-ons without a definition: who may create them in the namespace of a cluster gives
	// them any name, and a label must not have any number of values.
	undefined = "(undefined)"
)

// stage is how far an add-on on a cluster is with its configuration.
type stage string

const (
	stageComplete stage = "complete"
	stageMoving   stage = "moving"
	stageWaiting  stage = "waiting"
	stageFailed   stage = "failed"
)

// facts are what is counted.
type facts struct {
	now         time.Time
	clusters    []clusterv1.ManagedCluster
	addOns      []client.Object
	definitions []*addonv1beta1.ClusterManagementAddOn
	leases      []coordinationv1.Lease
}

// ofAddOn is a code or a stage of an add-on.
type ofAddOn[T ~string] struct {
	name string
	is   T
}

// fleet are the numbers of a fleet.
type fleet struct {
	clusters map[causes.Code]int
	addOns   map[ofAddOn[causes.Code]]int
	stages   map[ofAddOn[stage]]int
	// stopped is how many placements of each add-on have a rollout that does not go on; zero for those that have none.
	stopped map[string]int
	// ages are the ages of the heartbeats of accepted clusters.
	ages []time.Duration
	// firstEnd is when the first certificate of an agent ends; zero where no agent tells. late is how many of them should
	// have been replaced.
	firstEnd time.Time
	late     int
}

// count counts.
func count(f facts) fleet {
	n := fleet{
		clusters: map[causes.Code]int{}, addOns: map[ofAddOn[causes.Code]]int{}, stages: map[ofAddOn[stage]]int{},
		stopped: map[string]int{},
	}
	for _, d := range f.definitions {
		n.stopped[d.Name] = stopped(d)
	}
	clusters := map[string]*clusterv1.ManagedCluster{}
	for i := range f.clusters {
		c := &f.clusters[i]
		clusters[c.Name] = c
		n.clusters[codeOf(causes.OfCluster(causes.Cluster{
			Conditions: c.Status.Conditions, Accepted: c.Spec.HubAcceptsClient, Deleting: !c.DeletionTimestamp.IsZero(),
		}))]++
		n.certificate(c.Status.Conditions, f.now)
	}
	for _, a := range f.addOns {
		n.addOn(a, clusters[a.GetNamespace()])
	}
	for i := range f.leases {
		if l := &f.leases[i]; isAccepted(clusters[l.Namespace]) && l.Spec.RenewTime != nil {
			n.ages = append(n.ages, max(f.now.Sub(l.Spec.RenewTime.Time), 0)) // The clock of an agent may be ahead.
		}
	}
	return n
}

// addOn counts an add-on on a cluster; nil where the cluster does not exist.
func (n *fleet) addOn(a client.Object, c *clusterv1.ManagedCluster) {
	conditions, deleting := addonapi.Conditions(a), a.GetDeletionTimestamp() != nil
	cause := causes.OfAddOn(causes.AddOn{
		Conditions: conditions, Deleting: deleting, Hosted: causes.Hosted(a.GetAnnotations()),
		ClusterAlive: c != nil && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable),
	})
	name := undefined
	if _, defined := n.stopped[a.GetName()]; defined {
		name = a.GetName()
	}
	n.addOns[ofAddOn[causes.Code]{name, codeOf(cause)}]++
	if !deleting {
		n.stages[ofAddOn[stage]{name, stageOf(conditions)}]++
	}
}

func isAccepted(c *clusterv1.ManagedCluster) bool { return c != nil && c.Spec.HubAcceptsClient }

// stopped counts the placements of an add-on whose rollout does not go on.
func stopped(d *addonv1beta1.ClusterManagementAddOn) int {
	n := 0
	for i := range d.Status.InstallProgressions {
		if causes.Stopped(d.Status.InstallProgressions[i].Conditions) != nil {
			n++
		}
	}
	return n
}

// certificate counts the certificate of an agent.
func (n *fleet) certificate(conditions []metav1.Condition, now time.Time) {
	life, known := causes.LifeOf(conditions)
	if !known {
		return
	}
	if n.firstEnd.IsZero() || life.To.Before(n.firstEnd) {
		n.firstEnd = life.To
	}
	if life.Late(now) {
		n.late++
	}
}

// codeOf returns the code of a cause.
func codeOf(cause *causes.Cause) causes.Code {
	if cause == nil {
		return well
	}
	return cause.Code
}

// stageOf returns how far an add-on is.
func stageOf(conditions []metav1.Condition) stage {
	on := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	switch {
	case meta.IsStatusConditionTrue(conditions, names.ConditionRolloutFailed):
		return stageFailed
	case causes.Waits(conditions) != nil:
		return stageWaiting
	case on == nil:
		return stageMoving
	case on.Reason == addonv1beta1.ProgressingReasonCompleted:
		return stageComplete
	case on.Reason == addonv1beta1.ProgressingReasonFailed:
		return stageFailed
	}
	return stageMoving
}
