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
	"github.com/spokelet/spokelet/internal/expiry"
)

const (
	// well is the code of what has no problem.
	well causes.Code = "well"
	// undefined is the name of all add-ons without a definition: who may create them in the namespace of a cluster gives
	// them any name, and a label must not have any number of values.
	undefined = "(undefined)"
)

// facts are what is counted.
type facts struct {
	now         time.Time
	clusters    []clusterv1.ManagedCluster
	addOns      []client.Object
	definitions []*addonv1beta1.ClusterManagementAddOn
	leases      []coordinationv1.Lease
	// paused are the add-ons whose policy is paused.
	paused map[string]bool
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
	stages   map[ofAddOn[causes.Stage]]int
	// stopped is how many placements of each add-on have a rollout that does not go on; zero for those that have none.
	stopped map[string]int
	// held is from how many clusters the removal of each add-on is held; zero for those that have none.
	held map[string]int
	// paused reports of each add-on whether it is paused.
	paused map[string]bool
	// ages are the ages of the heartbeats of accepted clusters.
	ages []time.Duration
	// certificates are those of agents and add-ons whose ends are told.
	certificates expiry.Tally
}

// count counts.
func count(f facts) fleet {
	n := fleet{
		clusters: map[causes.Code]int{}, addOns: map[ofAddOn[causes.Code]]int{}, stages: map[ofAddOn[causes.Stage]]int{},
		stopped: map[string]int{}, held: map[string]int{}, paused: map[string]bool{},
		certificates: expiry.NewTally(expiry.Agent, expiry.AddOn),
	}
	for _, d := range f.definitions {
		n.paused[d.Name] = f.paused[d.Name]
		n.stopped[d.Name], n.held[d.Name] = stopped(d), causes.RemovalsHeld(d.Annotations)
	}
	clusters := map[string]*clusterv1.ManagedCluster{}
	for i := range f.clusters {
		c := &f.clusters[i]
		clusters[c.Name] = c
		n.clusters[codeOf(causes.OfCluster(causes.Cluster{
			Conditions: c.Status.Conditions, Accepted: c.Spec.HubAcceptsClient, Deleting: !c.DeletionTimestamp.IsZero(),
		}))]++
		n.certificate(expiry.Agent, c.Status.Conditions, f.now)
	}
	for _, a := range f.addOns {
		n.addOn(a, clusters[a.GetNamespace()])
		n.certificate(expiry.AddOn, addonapi.Conditions(a), f.now)
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
		is, _ := causes.StageOf(conditions, addonapi.Differs(a))
		n.stages[ofAddOn[causes.Stage]{name, is}]++
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

// certificate counts the certificate of an agent or an add-on.
func (n *fleet) certificate(of expiry.Kind, conditions []metav1.Condition, now time.Time) {
	if life, known := causes.LifeOf(conditions); known {
		n.certificates.Add(of, life, now)
	}
}

// codeOf returns the code of a cause.
func codeOf(cause *causes.Cause) causes.Code {
	if cause == nil {
		return well
	}
	return cause.Code
}
