package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// HubFacts are the facts by which a hub itself is judged.
type HubFacts struct {
	Now   time.Time
	State fleet.State
	// Wanted are the names of the admission policies that the hub manager of this version needs, and Version is this
	// version.
	Wanted  []string
	Version string
	// Clusters are all clusters of the hub.
	Clusters []fleet.Cluster
	// Lacks reports that a resource, by its plural, could not be read.
	Lacks func(plural string) bool
}

// hubManager is the Deployment of our hub manager, and the Lease of its leader.
const hubManager = "spokelet-hub"

const (
	// soon is how long before its end the authority of a webhook is told.
	soon = 14 * 24 * time.Hour
	// leaseLives are so many durations of a Lease after which its holder does not lead: clocks differ a little.
	leaseLives = 4
)

// JudgeHub judges a hub itself: its hub manager, the conversion of add-ons, the admission policies, the versions of the
// agents and the ends of their certificates. What could not be read is left out.
func JudgeHub(f HubFacts) []Finding {
	var all []Finding
	for _, finding := range []Finding{f.manager(), f.conversion(), f.policies(), f.agents(), f.certificates()} {
		if finding.What != "" {
			all = append(all, finding)
		}
	}
	return all
}

// own returns the Deployment of our hub manager; nil for none.
func (f HubFacts) own() *fleet.Manager {
	for i := range f.State.Managers {
		if f.State.Managers[i].Name == hubManager {
			return &f.State.Managers[i]
		}
	}
	return nil
}

// manager judges the hub manager, or the Deployments of OCM's.
func (f HubFacts) manager() Finding {
	finding := Finding{What: "hub manager", State: OK}
	switch own := f.own(); {
	case f.Lacks("deployments"):
		return Finding{}
	case own != nil:
		finding.Evidence = fmt.Sprintf("%s %s, %d of %d ready", hubManager, versionOf(own), own.Ready, own.Wanted)
		if own.Ready == 0 {
			return finding.fails(causes.HubDown, "kubectl spokelet logs hub --errors")
		}
		return f.leads(finding)
	case len(f.State.Managers) == 0:
		finding.State, finding.Evidence = Warning, "there is none in namespace "+names.NamespaceHub
		return finding
	}
	var down []string
	for i := range f.State.Managers {
		if m := &f.State.Managers[i]; m.Ready == 0 && m.Wanted > 0 {
			down = append(down, m.Name)
		}
	}
	finding.Evidence = Count(len(f.State.Managers), "Deployment") + " of OCM, all with ready pods"
	if len(down) > 0 {
		finding.Evidence = "no pod is ready of " + message.List(down, 3, ", ")
		return finding.fails(causes.HubDown, "kubectl get pods -n "+names.NamespaceHub)
	}
	return finding
}

// leads judges the leader of our hub manager.
func (f HubFacts) leads(finding Finding) Finding {
	for i := range f.State.Leases {
		l := &f.State.Leases[i].Spec
		if f.State.Leases[i].Metadata.Name != hubManager || l.RenewTime == nil || l.HolderIdentity == "" {
			continue
		}
		holder, _, _ := strings.Cut(l.HolderIdentity, "_")
		renewed := fleet.Known(l.RenewTime.Time)
		if renewed.IsZero() {
			continue
		}
		age := f.Now.Sub(renewed)
		if age > leaseLives*time.Duration(l.DurationSeconds)*time.Second {
			finding.Evidence += fmt.Sprintf("; %s led, and renewed its Lease %s ago", holder, duration.HumanDuration(age))
			return finding.fails(causes.HubDown, "kubectl spokelet logs hub --errors")
		}
		finding.Evidence += "; " + holder + " leads"
		if version := f.State.Leases[i].Metadata.Labels[names.LabelVersion]; version != "" {
			finding.Evidence += ", at " + version
		}
	}
	return finding
}

// fails makes a finding one that fails.
func (f Finding) fails(code causes.Code, next string) Finding {
	f.State, f.Code, f.Next = Failed, code, next
	return f
}

// versionOf returns the version of a program in words.
func versionOf(m *fleet.Manager) string { return cmp.Or(m.Version, "of an unknown version") }

// conversion judges the webhook that converts add-ons.
func (f HubFacts) conversion() Finding {
	if !f.State.Webhook {
		return Finding{}
	}
	finding := Finding{What: "conversion", State: OK, Evidence: "the webhook answers"}
	if f.State.Silent {
		finding.Evidence = "the webhook that converts add-ons between versions of their API does not answer"
		return finding.fails(causes.ConversionDown, "kubectl get pods -n "+names.NamespaceHub)
	}
	if len(f.State.Ends) == 0 {
		return finding
	}
	last := slices.MaxFunc(f.State.Ends, time.Time.Compare)
	finding.Evidence += ", its authority ends in " + duration.HumanDuration(last.Sub(f.Now))
	switch {
	case !last.After(f.Now):
		finding.Evidence = "the authority of the webhook that converts add-ons has ended"
		return finding.fails(causes.ConversionDown, "kubectl spokelet logs hub --errors")
	case last.Sub(f.Now) < soon:
		finding.State, finding.Next = Warning, "kubectl spokelet logs hub --errors"
	}
	return finding
}

// policies judges the admission policies of a hub with our hub manager.
func (f HubFacts) policies() Finding {
	own := f.own()
	if own == nil || f.Lacks("validatingadmissionpolicies") || f.Lacks("validatingadmissionpolicybindings") {
		return Finding{}
	}
	var missing []string
	for _, name := range f.Wanted {
		if !slices.Contains(f.State.Policies, name) || !slices.Contains(f.State.Bound, name) {
			missing = append(missing, name)
		}
	}
	finding := Finding{What: "admission policies", State: OK, Evidence: fmt.Sprintf("%d of %d are in force",
		len(f.Wanted)-len(missing), len(f.Wanted))}
	if len(missing) == 0 {
		return finding
	}
	finding.Evidence += "; not " + message.List(missing, 3, ", ")
	if has := versionOf(own); has != f.Version {
		finding.State, finding.Code = Warning, causes.PoliciesMissing
		finding.Evidence += fmt.Sprintf(". They are those of %s, and the hub manager is %s", f.Version, has)
		return finding
	}
	return finding.fails(causes.PoliciesMissing, "apply the policies of this version again (docs/operations/install.md)")
}

// agents counts the versions of the agents.
func (f HubFacts) agents() Finding {
	counts := map[string]int{}
	for i := range f.Clusters {
		counts[ClusterDetails(&f.Clusters[i], nil).Agent]++
	}
	if len(counts) == 0 || len(counts) == 1 && counts[""] > 0 {
		return Finding{} // OCM's agents do not tell.
	}
	var said []string
	for version, count := range counts {
		if version != "" {
			said = append(said, fmt.Sprintf("%s on %s", version, Count(count, "cluster")))
		}
	}
	slices.Sort(said)
	if counts[""] > 0 {
		said = append(said, fmt.Sprintf("not told by %d", counts[""]))
	}
	return Finding{What: "agents", State: OK, Evidence: message.List(said, 5, ", ")}
}

// certificates judges the ends of the certificates of agents.
func (f HubFacts) certificates() Finding {
	var late []string
	var first time.Time
	var of string
	for i := range f.Clusters {
		c := &f.Clusters[i]
		life, known := lifeOf(c.Status.Conditions)
		if !known {
			continue
		}
		if first.IsZero() || life.To.Before(first) {
			first, of = life.To, c.Metadata.Name
		}
		if life.Late(f.Now) {
			late = append(late, c.Metadata.Name)
		}
	}
	if first.IsZero() {
		return Finding{}
	}
	finding := Finding{What: "certificates", State: OK}
	ends := "ended " + duration.HumanDuration(f.Now.Sub(first)) + " ago"
	if first.After(f.Now) {
		ends = "ends in " + duration.HumanDuration(first.Sub(f.Now))
	}
	finding.Evidence = fmt.Sprintf("the first of an agent %s, that of %s", ends, of)
	if len(late) > 0 {
		finding.State, finding.Code = Warning, causes.CertificateLate
		finding.Next = Command(KindCluster, "kubectl spokelet why cluster {name}", "{name}", of)
		finding.Evidence += fmt.Sprintf("; %s should have been replaced", Count(len(late), "certificate"))
	}
	return finding
}
