package addon

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// hostedAgent is the prefix of the mark of an agent on a Secret on another cluster than the agent.
const hostedAgent = "hosted:"

// ownership is the owner of a Secret with the name of ours.
type ownership struct {
	// foreign explains why the Secret is not ours; empty when it is.
	foreign string
	// unlessGone is the namespace of the agent that the Secret belongs to, on the same cluster as the Secret. The Secret
	// is ours if that namespace is gone. Empty when nothing could make the Secret ours.
	unlessGone string
}

// markOf returns the mark of this agent on the Secrets that it creates on a cluster.
func markOf(f facts, on side) string {
	if f.split && on == sideSpoke {
		return hostedAgent + f.agent
	}
	return f.agent
}

// isCredentialOf reports whether a Secret without our labels has the content of a registration, as another agent stored
// it: it names no other cluster, and the subject of its certificate or its token is that of the add-on. Older agents of
// OCM stored no name of the cluster, so that without one, the subject must name the cluster. A Secret without content
// has nothing to lose.
func isCredentialOf(secret *corev1.Secret, f facts, reg registration) bool {
	if len(secret.Data) == 0 {
		return true
	}
	cluster := string(secret.Data[csr.KeyClusterName])
	if cluster != "" && cluster != f.cluster {
		return false
	}
	claims, err := token.Parse(secret.Data[token.KeyToken])
	if err == nil && reg.kubeconfig && claims.Subject == token.User(f.cluster, f.name) {
		return true
	}
	block, _ := pem.Decode(secret.Data[csr.KeyCertificate])
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	user := certificate.Subject.CommonName
	id, own := csr.ParseAddonUser(user)
	return cluster != "" && user == reg.request.User || own && id.Cluster == f.cluster && id.Addon == f.name
}

// ownerOf returns the owner of a Secret. Secrets without our labels have none, and those are ours that this agent
// created under a former name of its cluster or for a former hub: the mark names the agent. hub is our hub.
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

// foreignOf describes the other owner of a Secret and the remedy.
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

// isOfOthers reports whether another agent created a Secret with the names of our cluster and add-on: an agent of a
// cluster with the same name at another hub, or one that shares our namespace.
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
