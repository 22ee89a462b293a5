package report

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/spokelet/spokelet/internal/causes"
)

// Before are the facts by which it is judged whether Spokelet can be installed on a hub.
type Before struct {
	// Kubernetes is the version of the hub.
	Kubernetes string
	// Policies reports whether it serves ValidatingAdmissionPolicies.
	Policies bool
	// OCM reports whether it has a ClusterManager of OCM's operator, Definitions whether the APIs of OCM are served, and
	// HubManager whether a hub manager of Spokelet is installed.
	OCM, Definitions, HubManager bool
	// Lacks are the rights that the user lacks, such as "create customresourcedefinitions.apiextensions.k8s.io".
	Lacks []string
}

// Finding is one line of the judgement.
type Finding struct {
	What     string `json:"what"`
	State    State  `json:"state"`
	Evidence string `json:"evidence"`
	// Code is that of what is wrong; empty where nothing is, and before an installation.
	Code causes.Code `json:"code,omitempty"`
	// Next is what to do about it; empty where nothing has to be done.
	Next string `json:"next,omitempty"`
}

// leastKubernetes is the first version of Kubernetes with admission policies as they are shipped.
const leastKubernetes = "1.30"

// JudgeBefore judges whether Spokelet can be installed on a hub.
func JudgeBefore(b Before) []Finding {
	var all []Finding
	found, err := version.ParseGeneric(b.Kubernetes)
	kubernetes := Finding{What: "Kubernetes", State: OK, Evidence: b.Kubernetes + ", needs " + leastKubernetes}
	if err != nil || !found.AtLeast(version.MustParseGeneric(leastKubernetes)) {
		kubernetes.State, kubernetes.Next = Failed, "upgrade the control plane of the hub to Kubernetes "+leastKubernetes
	}
	policies := Finding{What: "admission policies", State: OK, Evidence: "ValidatingAdmissionPolicy v1 is served"}
	if !b.Policies {
		policies.State, policies.Evidence = Failed, "ValidatingAdmissionPolicy v1 is not served"
		policies.Next = "turn admissionregistration.k8s.io/v1 on: the policies keep what agents and authors may write"
	}
	all = append(all, kubernetes, policies)
	installed := Finding{What: "installed", State: OK, Evidence: "neither OCM nor Spokelet: all parts can be installed"}
	switch {
	case b.OCM:
		installed.State, installed.Evidence = Warning, "a ClusterManager of OCM's operator"
		installed.Next = "install the agent and this plugin alone, or move the hub: docs/operations/move-from-ocm.md"
	case b.HubManager:
		installed.Evidence = "a hub manager of Spokelet: this is an upgrade (docs/operations/upgrade.md)"
	case b.Definitions:
		installed.State, installed.Evidence = Warning, "definitions of OCM's APIs without an operator or a hub manager"
		installed.Next = "find out whose they are: the installation takes those over that it ships " +
			"(docs/operations/install.md)"
	}
	rights := Finding{What: "your rights", State: OK, Evidence: "you may create what the installation needs"}
	if len(b.Lacks) > 0 {
		rights.State, rights.Evidence = Failed, fmt.Sprintf("you may not %s", strings.Join(b.Lacks, ", "))
		rights.Next = "let an administrator of the hub install"
	}
	return append(all, installed, rights)
}
