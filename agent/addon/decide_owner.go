package addon

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// hostedAgent starts the mark of an agent on a Secret that is on another cluster than the agent.
const hostedAgent = "hosted:"

// ownership is whose a Secret is that stands where ours is to be.
type ownership struct {
	// foreign says why the Secret is not ours, for people; empty when it is.
	foreign string
	// unlessGone is the namespace of the agent that the Secret belongs to, on the same cluster as the Secret. The Secret
	// is ours if that namespace is gone. Empty when nothing could make the Secret ours.
	unlessGone string
}

// markOf is how this agent marks the Secrets that it makes on a cluster.
func markOf(f facts, on side) string {
	if f.split && on == sideSpoke {
		return hostedAgent + f.agent
	}
	return f.agent
}

// ownerOf says whose a Secret is. Secrets that no agent of this kind made are ours to take, and so are those that this
// agent made under a former name of its cluster or for a former hub: a mark names the agent. hub is ours.
func ownerOf(secret *corev1.Secret, f facts, on side, hub string) ownership {
	if secret.Labels[names.LabelCredential] == "" {
		return ownership{}
	}
	addon, cluster := secret.Labels[names.LabelAddonName], secret.Labels[names.LabelClusterName]
	mark, from := secret.Annotations[names.AnnotationAgent], secret.Annotations[names.AnnotationHub]
	sameHub := from == "" || from == hub
	own := addon == f.name
	switch {
	case own && cluster == f.cluster && (sameHub || mark == ""):
		return ownership{}
	case own && mark != "" && mark == markOf(f, on):
		return ownership{}
	case own && mark == "" && sameHub && (!f.split || on != sideAgent):
		// An earlier version wrote no mark. On a managed cluster, one hub knows one agent.
		return ownership{}
	}
	return foreignOf(secret, own, mark)
}

// foreignOf says that a Secret is of another agent or add-on, and what to do.
func foreignOf(secret *corev1.Secret, own bool, mark string) ownership {
	o := ownership{foreign: fmt.Sprintf("secret %s/%s belongs to add-on %s of cluster %s: "+
		"give one of the two add-ons another namespace", secret.Namespace, secret.Name,
		secret.Labels[names.LabelAddonName], secret.Labels[names.LabelClusterName])}
	if !own {
		return o
	}
	namespace, _, found := strings.Cut(mark, "/")
	switch {
	case mark == "":
		o.foreign += ", or delete the secret if no other agent uses it"
	case !found || strings.HasPrefix(mark, hostedAgent):
		o.foreign += fmt.Sprintf(", or delete the secret if agent %s is no more", mark)
	default:
		o.foreign += fmt.Sprintf(", or delete the secret if the agent in namespace %s is no more", namespace)
		o.unlessGone = namespace
	}
	return o
}

// isOfOthers reports whether a Secret with the names of our cluster and of our add-on was made by another agent, whose
// cluster has the same name at another hub or which shares our namespace.
func isOfOthers(secret *corev1.Secret, f facts, on side, hub string) bool {
	mark := secret.Annotations[names.AnnotationAgent]
	if mark == "" || mark == markOf(f, on) {
		return false
	}
	if secret.Labels[names.LabelCredential] == names.CredentialPending {
		return true
	}
	from := secret.Annotations[names.AnnotationHub]
	return from != "" && from != hub
}
