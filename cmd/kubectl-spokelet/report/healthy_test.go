package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/names"
)

// states is how many random states are judged; the seeds are 1 and up.
const states = 1000

// world makes a fleet in which all is well.
type world struct {
	*rand.Rand

	// ours reports whether our hub manager and our agents wrote it, and not those of OCM.
	ours      bool
	fleet     Fleet
	decisions []fleet.Decision
	works     []fleet.Work
}

// maybe is true in one of n cases.
func (w *world) maybe(n int) bool { return w.IntN(n) == 0 }

// since is some time before noon, and now and then none: an agent may leave it out.
func (w *world) since() metav1.Time {
	if w.maybe(10) {
		return metav1.Time{}
	}
	return metav1.NewTime(noon().Add(-time.Duration(w.IntN(90*24*3600)) * time.Second))
}

// said is a condition.
func (w *world) said(kind string, status metav1.ConditionStatus, reason, text string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text, LastTransitionTime: w.since()}
}

// yes is a condition that is True.
func (w *world) yes(kind, reason, text string) metav1.Condition {
	return w.said(kind, metav1.ConditionTrue, reason, text)
}

// of picks one.
func of[T any](w *world, all ...T) T { return all[w.IntN(len(all))] }

// shuffled returns conditions in any order: they are a map.
func (w *world) shuffled(all []metav1.Condition) []metav1.Condition {
	if w.maybe(3) { // Of a program that is none of ours.
		bad := of(w, metav1.ConditionFalse, metav1.ConditionUnknown)
		all = append(all, w.said("example.com/Backup", bad, "Failed", "no disk"))
	}
	w.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// cluster adds a cluster.
func (w *world) cluster(name string) {
	c := fleet.Cluster{}
	c.Metadata.Name, c.Metadata.CreationTimestamp, c.Spec.HubAcceptsClient = name, w.since(), true
	all := []metav1.Condition{
		w.yes("HubAcceptedManagedCluster", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
		w.yes("ManagedClusterJoined", "ManagedClusterJoined", "Managed cluster joined"),
		w.yes("ManagedClusterConditionAvailable", "ManagedClusterAvailable", "Managed cluster is available"),
	}
	if !w.maybe(3) {
		all = append(all, w.yes("ManagedClusterConditionClockSynced", "ManagedClusterClockSynced",
			"The clock of the managed cluster is synced with the hub."))
	}
	if w.ours || w.maybe(2) {
		all = append(all, w.yes(names.ConditionCertificateRotated, "ClientCertificateUpdated",
			"client certificate rotated starting from 2026-11-01 00:00:00 +0000 UTC to 2027-11-01 00:00:00 +0000 UTC"))
	}
	for _, c := range []metav1.Condition{
		w.yes(names.ConditionWorksPresent, "WorksPresent", ""), w.yes(names.ConditionAgentQuiet, "AgentQuiet", ""),
		w.yes(names.ConditionNamespaceReady, "NamespaceOfCluster", ""),
	} {
		if w.ours && w.maybe(4) { // They are there only after they were False.
			all = append(all, c)
		}
	}
	c.Status.Conditions = w.shuffled(all)
	w.fleet.Clusters = append(w.fleet.Clusters, c)
	w.requests(name)
}

// requests adds requests of the agent of a cluster: those that led to its certificate, denied ones before, and one that
// is being decided.
func (w *world) requests(cluster string) {
	for n := range w.IntN(4) {
		r := fleet.Request{}
		r.Metadata.Name = fmt.Sprintf("%s-%d", cluster, n)
		r.Metadata.CreationTimestamp = metav1.NewTime(noon().Add(time.Duration(n-10) * time.Hour))
		r.Metadata.Labels = map[string]string{names.LabelClusterName: cluster}
		r.Spec.SignerName = kubeSigner
		if w.maybe(3) {
			r.Metadata.Labels[names.LabelAddonName] = "logs"
		}
		switch w.IntN(4) {
		case 0:
			r.Status.Conditions = []fleet.RequestCondition{{Type: "Denied", Status: "True", Reason: "ByJane"}}
		case 1:
		default:
			r.Status.Certificate = []byte("certificate")
			r.Status.Conditions = []fleet.RequestCondition{{
				Type: "Approved", Status: "True", Reason: "AutoApprovedByHubCSRApprovingController",
			}}
		}
		w.fleet.Requests = append(w.fleet.Requests, r)
	}
}

// kubeSigner is the signer of the requests.
const kubeSigner = "kubernetes.io/kube-apiserver-client"

// moves says how far the rollout of an add-on is.
type moves int

const (
	settled moves = iota
	moving
	waits
)

// configured are the conditions of the configuration of an add-on.
func (w *world) configured(at moves) []metav1.Condition {
	configured := w.yes("Configured", "ConfigurationsConfigured", "Configurations configured")
	on := w.said("Progressing", metav1.ConditionFalse, "Completed", "completed with no errors.")
	switch at {
	case settled:
	case moving:
		on = w.yes("Progressing", "Progressing", of(w, "progressing... mca and work configs mismatch",
			"progressing... work is not ready", "progressing... no addon works"))
	case waits:
		text := "Configurations updated and not configured yet"
		if w.ours {
			text += ": waits for its turn in the rollout: maxConcurrency is 25%, maxFailures is 0; " +
				"status.installProgressions of the ClusterManagementAddOn reports the progress"
		}
		configured = w.said("Configured", metav1.ConditionFalse, "ConfigurationsNotConfigured", text)
	}
	return []metav1.Condition{configured, on}
}

// registered are the conditions of the registration and the credentials of an add-on.
func (w *world) registered() []metav1.Condition {
	infrastructure := w.yes("TokenInfrastructureReady", "TokenInfrastructureReady", "ServiceAccount c/a-agent (UID: 1) is ready")
	refreshed := w.yes("TokenRefreshed", "AddonTokenRefreshed", "Addon token refreshed, expires at 2027-11-01T00:00:00Z")
	rotated := w.yes(names.ConditionCertificateRotated, "ClientCertificateUpdated", "client certificate rotated ...")
	const registered = "Registration of the addon agent is configured"
	all := []metav1.Condition{w.yes("RegistrationApplied", "SetPermissionApplied", registered)}
	switch w.IntN(5) {
	case 0:
		return []metav1.Condition{w.yes("RegistrationApplied", "NilRegistration", registered)}
	case 1:
		return append(all, infrastructure, refreshed)
	case 2: // After a change of the driver.
		return append(all, infrastructure, refreshed, rotated)
	case 3:
		return all // OCM's agent loses the condition when its first write fails.
	}
	return append(all, rotated)
}

// health is the condition Available of an add-on.
func (w *world) health(name string) metav1.Condition {
	switch w.IntN(3) {
	case 0:
		return w.yes("Available", "ProbeAvailable", "Probe addon status is available")
	case 1:
		return w.yes("Available", "WorkApplied", "Addon manifestWork is applied")
	}
	return w.yes("Available", "ManagedClusterAddOnLeaseUpdated", name+" add-on is available.")
}

// addOn adds an add-on on a cluster, with its works.
func (w *world) addOn(cluster, name string, at moves) {
	a := fleet.AddOn{}
	a.Metadata.Namespace, a.Metadata.Name, a.Metadata.CreationTimestamp = cluster, name, w.since()
	if w.maybe(12) { // The program of its author writes no more than that, and applies by itself.
		a.Status.Conditions = w.shuffled([]metav1.Condition{
			w.yes("Available", "ManagedClusterAddOnLeaseUpdated", name+" add-on is available."),
			w.said("Progressing", metav1.ConditionFalse, "WaitingForManifestApplied", ""),
		})
		w.fleet.AddOns = append(w.fleet.AddOns, a)
		return
	}
	all := append(w.configured(at), w.registered()...)
	all = append(all, w.health(name))
	all = append(all, w.yes("ManifestApplied", "AddonManifestApplied", "manifests of addon are applied successfully"))
	if w.maybe(8) { // OCM's hub leaves them where an add-on is not hosted any more.
		all = append(all, w.said("HostingClusterValidity", metav1.ConditionFalse, "HostingClusterInvalid", ""),
			w.said("HostingManifestApplied", metav1.ConditionFalse, "ManifestWorkApplyFailed", ""))
	} else if w.maybe(5) {
		all = append(all, w.yes("HostingClusterValidity", "HostingClusterValid", ""),
			w.yes("HostingManifestApplied", "AddonManifestApplied", ""))
	}
	if w.maybe(5) {
		all = append(all, w.yes("HookManifestCompleted", "HookManifestIsCompleted", ""),
			w.said("Degraded", metav1.ConditionFalse, "AsExpected", ""))
	}
	if w.ours && w.maybe(4) {
		all = append(all, of(w, w.said(names.ConditionSoaked, metav1.ConditionFalse, "BrokeWhileItSoaked", ""),
			w.yes(names.ConditionSoaked, "SoakedBefore", ""),
			w.said(names.ConditionSoaked, metav1.ConditionUnknown, "OwnConfiguration", "")),
			w.said(names.ConditionRolloutFailed, metav1.ConditionFalse,
				of(w, "AwaitsOwnConfiguration", "DeadlineBeganAgain"), ""))
	}
	a.Status.Conditions = w.shuffled(all)
	w.fleet.AddOns = append(w.fleet.AddOns, a)
	for n := range w.IntN(3) {
		w.work(cluster, name, fmt.Sprintf("addon-%s-deploy-%d", name, n))
	}
}

// work adds a work of an add-on.
func (w *world) work(cluster, addOn, name string) {
	generation := 1 + w.Int64N(9)
	manifests := w.IntN(4)
	work := fleet.Work{}
	work.Metadata.Namespace, work.Metadata.Name, work.Metadata.Generation = cluster, name, generation
	work.Metadata.CreationTimestamp = w.since()
	work.Metadata.Labels = map[string]string{names.LabelAddonName: addOn}
	at := func(c metav1.Condition) metav1.Condition {
		c.ObservedGeneration = generation
		return c
	}
	if manifests == 0 { // OCM's agent says this, and nothing of Applied.
		work.Status.Conditions = []metav1.Condition{at(w.said("Available", metav1.ConditionUnknown, "ResourcesStatusUnknown",
			"cannot get any available resource "))}
		if w.maybe(2) {
			work.Status.Conditions = nil
		}
		w.works = append(w.works, work)
		return
	}
	list := `{"spec": {"workload": {"manifests": [{}`
	for range manifests - 1 {
		list += `, {}`
	}
	if err := json.Unmarshal([]byte(list+`]}}}`), &work); err != nil {
		panic(err)
	}
	all := []metav1.Condition{
		at(w.yes("Applied", "AppliedManifestWorkComplete", "Apply manifest work complete")),
		at(w.yes("Available", "ResourcesAvailable", "All resources are available")),
	}
	if w.maybe(3) {
		all = append(all, at(of(w, w.said("Progressing", metav1.ConditionFalse, "ConditionRulesAggregated", ""),
			w.said("Degraded", metav1.ConditionFalse, "ConditionRulesAggregated", ""),
			w.yes("Complete", "ConditionRulesAggregated", "Job is finished"),
			w.said("Complete", metav1.ConditionFalse, "ConditionRulesAggregated", "Job is not finished"))))
	}
	if meta.IsStatusConditionTrue(all, "Complete") && w.maybe(2) {
		work.Metadata.Generation++ // OCM's agent leaves it alone.
	}
	work.Status.Conditions = w.shuffled(all)
	for n := range manifests {
		m := fleet.ManifestState{}
		m.Resource.Kind, m.Resource.Name, m.Resource.Ordinal = "ConfigMap", "c", int32(n)
		m.Conditions = w.shuffled([]metav1.Condition{
			at(w.yes("Applied", "AppliedManifestComplete", "Apply manifest complete")),
			w.yes("Available", "ResourceAvailable", "Resource is available"),
			w.yes("StatusFeedbackSynced", "NoStatusFeedbackSynced", ""),
		})
		work.Status.Resources.Manifests = append(work.Status.Resources.Manifests, m)
	}
	w.works = append(w.works, work)
}

// define adds a definition with its add-ons on the clusters.
func (w *world) define(name string) (complete bool) {
	d := fleet.Definition{}
	d.Metadata.Name = name
	placed := w.maybe(2)
	rolls := placed && w.maybe(3)
	count := len(w.fleet.Clusters)
	page := fleet.Decision{}
	page.Metadata.Namespace, page.Metadata.Name = "add-ons", name+"-decision-1"
	page.Metadata.Labels = map[string]string{names.LabelPlacement: name}
	complete = true
	for i := range w.fleet.Clusters {
		at := settled
		if rolls {
			at = of(w, settled, moving, waits)
		}
		complete = complete && at == settled
		w.addOn(w.fleet.Clusters[i].Metadata.Name, name, at)
		page.Status.Decisions = append(page.Status.Decisions, struct {
			ClusterName string `json:"clusterName"`
		}{w.fleet.Clusters[i].Metadata.Name})
	}
	if placed {
		ref := fleet.PlacementRef{Namespace: "add-ons", Name: name}
		on := w.said("Progressing", metav1.ConditionFalse, "Completed", fmt.Sprintf(
			"selected clusters %[1]d. configured addons %[1]d/%[1]d completed with no errors, 0 failed 0 timeout.", count))
		if !complete {
			on = w.yes("Progressing", "Progressing", fmt.Sprintf(
				"selected clusters %d. configured addons %d/%[1]d progressing..., 0 failed 0 timeout.", count, w.IntN(count+1)))
		}
		d.Spec.InstallStrategy.Type, d.Spec.InstallStrategy.Placements = "Placements", []fleet.PlacementRef{ref}
		d.Status.InstallProgressions = []fleet.Progression{{PlacementRef: ref, Conditions: []metav1.Condition{on}}}
		w.decisions = append(w.decisions, page)
	}
	w.fleet.Definitions = append(w.fleet.Definitions, d)
	return complete
}

// well makes the fleet of a seed.
func well(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, seed)), ours: seed%2 == 0}
	for n := range 1 + w.IntN(5) {
		w.cluster(fmt.Sprintf("store-%d", n))
	}
	return w
}

func TestAFleetThatIsWellHasNoProblem(t *testing.T) {
	for seed := range uint64(states) {
		w := well(seed + 1)
		for _, name := range []string{"logs", "metrics"}[:1+w.IntN(2)] {
			w.define(name)
		}
		require.Empty(t, Problems(w.fleet), "seed %d", seed+1)
		for i := range w.fleet.Clusters {
			c := &w.fleet.Clusters[i]
			var own []fleet.Request
			for _, r := range w.fleet.Requests {
				if r.Metadata.Labels[names.LabelClusterName] == c.Metadata.Name {
					own = append(own, r)
				}
			}
			isWell(t, seed+1, ClusterChain(c.Metadata.Name, ClusterFacts{
				Now: noon(), Cluster: c, Requests: own, Heartbeat: noon().Add(-time.Duration(w.IntN(600)) * time.Second),
			}))
		}
		for i := range w.works {
			isWell(t, seed+1, WorkChain(w.works[i].Metadata.Namespace, w.works[i].Metadata.Name, &w.works[i]))
		}
		w.addOnsAreWell(t, seed+1)
	}
}

// addOnsAreWell follows all add-ons.
func (w *world) addOnsAreWell(t *testing.T, seed uint64) {
	t.Helper()
	for i := range w.fleet.AddOns {
		a := &w.fleet.AddOns[i]
		f := AddOnFacts{Now: noon(), AddOn: a, Decisions: w.decisions, Others: w.fleet.AddOns}
		for n := range w.fleet.Clusters {
			if w.fleet.Clusters[n].Metadata.Name == a.Metadata.Namespace {
				f.Cluster = &w.fleet.Clusters[n]
			}
		}
		for n := range w.fleet.Definitions {
			if w.fleet.Definitions[n].Metadata.Name == a.Metadata.Name {
				f.Definition = &w.fleet.Definitions[n]
			}
		}
		for _, work := range w.works {
			if work.Metadata.Namespace == a.Metadata.Namespace && work.Metadata.Labels[names.LabelAddonName] == a.Metadata.Name {
				f.Works = append(f.Works, work)
			}
		}
		isWell(t, seed, AddOnChain(a.Metadata.Namespace, a.Metadata.Name, f))
	}
}

// isWell requires that a chain names nothing.
func isWell(t *testing.T, seed uint64, c Chain) {
	t.Helper()
	require.Nil(t, c.Problem, "seed %d: %s %s/%s", seed, c.Kind, c.Namespace, c.Name)
	require.True(t, c.Healthy, "seed %d", seed)
	for _, step := range c.Steps {
		require.NotEqual(t, Failed, step.State, "seed %d: %s %s/%s: %+v", seed, c.Kind, c.Namespace, c.Name, step)
	}
}

func TestARolloutThatGoesOnHasNoFailures(t *testing.T) {
	for seed := range uint64(states) {
		w := well(seed + 1)
		complete := w.define("logs")
		got := RolloutOf("logs", &w.fleet.Definitions[0], w.fleet.AddOns, w.decisions)
		require.Zero(t, got.Failed, "seed %d", seed+1)
		for _, p := range got.Placements {
			for _, s := range p.Stages {
				require.NotEqual(t, StageFailed, s.Stage, "seed %d", seed+1)
			}
		}
		if !complete {
			require.False(t, got.Complete, "seed %d", seed+1)
		}
	}
}

// The states above would be judged well by a judge who sees nothing: of each, one add-on stops.
func TestOneAddOnThatStopsIsFoundInAnyFleet(t *testing.T) {
	for seed := range uint64(states) {
		w := well(seed + 1)
		w.define("logs")
		a := &w.fleet.AddOns[w.IntN(len(w.fleet.AddOns))]
		for i := range a.Status.Conditions {
			if c := &a.Status.Conditions[i]; c.Type == "Available" {
				c.Status, c.Reason = metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped"
			}
		}
		problems := Problems(w.fleet)
		require.Len(t, problems, 1, "seed %d", seed+1)
		require.Equal(t, a.Metadata.Namespace, problems[0].Namespace, "seed %d", seed+1)
	}
}
