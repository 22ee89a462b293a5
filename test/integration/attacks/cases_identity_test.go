package attacks_test

import (
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// The rules that the hub names.
func rules(all ...string) []string { return all }

// labelled replaces labels of a request.
func labelled(labels map[string]string) func(*certificatesv1.CertificateSigningRequest) {
	return func(request *certificatesv1.CertificateSigningRequest) { maps.Copy(request.Labels, labels) }
}

// spoiled is a request with another common name.
func user(name string) func(*csr.Request) { return func(r *csr.Request) { r.User = name } }

// extraGroup adds an organization.
func extraGroup(name string) func(*csr.Request) {
	return func(r *csr.Request) { r.Groups = append(r.Groups, name) }
}

// thefts of the credential of a cluster: the content is right, the requester is not.
func theftsOfClusters() map[string]forgery {
	victim := csr.ForCluster("cluster1", agentName)
	return map[string]forgery{
		"the agent of cluster10 asks for the credential of cluster1": {
			as: agent10, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
		},
		"another agent of cluster1 asks for the credential of the first": {
			as: sibling, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
		},
		"the agent of cluster1 asks for one in the name of another agent of cluster1": {
			as: agent1, asks: csr.ForCluster("cluster1", "agent2"), rules: rules(approve.ReasonRequesterNotTrusted),
		},
		"an add-on of cluster1 asks for the credential of cluster1": {
			as: hello1, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
		},
		"a ServiceAccount asks for the credential of cluster1": {
			as: account, asks: victim, rules: rules(approve.ReasonAwaitingApproval),
		},
		"the bootstrap ServiceAccount, which is not trusted, asks for the credential of cluster1": {
			as: bootstrap, asks: victim, rules: rules(approve.ReasonAwaitingApproval),
		},
		"a user whose name is that of the group of cluster1 asks for its credential": {
			as: impostor, asks: victim, rules: rules(approve.ReasonAwaitingApproval),
		},
		"a user whose name goes on behind that of the agent asks for its credential": {
			as: nested, asks: victim, rules: rules(approve.ReasonAwaitingApproval),
		},
		"the agent of cluster10 claims in an annotation to be the agent of cluster1": {
			as: agent10, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Annotations = map[string]string{
					"open-cluster-management.io/csr-user": csr.ClusterUser("cluster1", agentName),
				}
			},
		},
		"the agent of cluster10 writes another requester into the request": {
			as: agent10, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Username, request.Spec.UID = csr.ClusterUser("cluster1", agentName), "1"
				request.Spec.Groups = []string{csr.ClusterGroup("cluster1"), "system:masters"}
				request.Spec.Extra = map[string]certificatesv1.ExtraValue{"a": {"b"}}
			},
		},
		"the agent of cluster10 creates a request that says to be approved already": {
			as: agent10, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
					Type: certificatesv1.CertificateApproved, Status: "True", Reason: approve.ReasonApproved,
				}}
			},
		},
		"a denied cluster renews": {
			as: denied, asks: csr.ForCluster("denied", agentName), rules: rules(approve.ReasonRenewalNotAllowed),
		},
		"a deleted cluster renews": {
			as: gone, asks: csr.ForCluster("gone", agentName), rules: rules("ClusterNotFound"),
		},
		"a deleted cluster asks for the credential of cluster1": {
			as: gone, asks: victim, rules: rules(approve.ReasonRequesterNotTrusted),
		},
		"the bootstrap ServiceAccount asks for a cluster that was never accepted": {
			as: bootstrap, asks: csr.ForCluster("waiting", agentName), rules: rules(approve.ReasonAwaitingApproval),
		},
	}
}

// thefts of the credential of an add-on.
func theftsOfAddons() map[string]forgery {
	victim := forAddon("cluster1", "hello", kube)
	untrusted := rules(approve.ReasonRequesterNotTrusted)
	return map[string]forgery{
		"the agent of cluster10 asks for an add-on of cluster1": {as: agent10, asks: victim, rules: untrusted},
		"the agent of cluster10 asks for an add-on of cluster1 with the groups of older agents": {
			as: agent10, asks: victim, fields: extraGroup("system:authenticated"), rules: untrusted,
		},
		"the agent of cluster10 claims in an annotation to be the agent of the add-on's cluster": {
			as: agent10, asks: victim, rules: untrusted,
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Annotations = map[string]string{
					"open-cluster-management.io/csr-user": csr.ClusterUser("cluster1", agentName),
				}
			},
		},
		"an add-on renews by itself":                                {as: hello1, asks: victim, rules: untrusted},
		"an add-on asks for another add-on of its cluster":          {as: hello1, asks: forAddon("cluster1", "vault", kube), rules: untrusted},
		"a ServiceAccount asks for an add-on":                       {as: account, asks: victim, rules: untrusted},
		"the bootstrap ServiceAccount asks for an add-on":           {as: bootstrap, asks: victim, rules: untrusted},
		"the trusted bootstrap user asks for an add-on":             {as: trusted, asks: victim, rules: untrusted},
		"a user with the group name of cluster1 asks for add-on":    {as: impostor, asks: victim, rules: untrusted},
		"a user with more behind the name of the agent of cluster1": {as: nested, asks: victim, rules: untrusted},
		"a denied cluster asks for its add-on": {
			as: denied, asks: forAddon("denied", "hello", kube), rules: rules("ClusterNotAccepted"),
		},
		"a deleted cluster asks for its add-on": {
			as: gone, asks: forAddon("gone", "hello", kube), rules: rules("ClusterNotFound"),
		},
		"a deleted cluster asks for the add-on of cluster1": {as: gone, asks: victim, rules: untrusted},
		"an agent asks for an add-on that is not enabled on its cluster": {
			as: agent10, asks: forAddon("cluster10", "vault", kube), rules: rules("AddonNotFound"),
		},
		"an agent asks for an add-on of a cluster that does not exist": {
			as: agent10, asks: forAddon("cluster100", "hello", kube), rules: rules("ClusterNotFound"),
		},
		"an agent asks for an add-on of a cluster that was never accepted": {
			as: agent10, asks: forAddon("waiting", "hello", kube), rules: rules("ClusterNotAccepted"),
		},
		"an agent asks for an add-on that this hub does not know": {
			as: agent10, asks: forAddon("cluster10", "unknown", kube),
		},
	}
}

// labels that do not fit the content.
func forgedLabels() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	unexpected := rules(approve.ReasonSubjectNotExpected)
	return map[string]forgery{
		"the label of cluster1 on a request for cluster10": {
			as: agent10, asks: own, object: labelled(map[string]string{names.LabelClusterName: "cluster1"}), rules: unexpected,
		},
		"the label of cluster10 on a request for cluster1": {
			as: agent10, asks: csr.ForCluster("cluster1", agentName),
			object: labelled(map[string]string{names.LabelClusterName: "cluster10"}), rules: unexpected,
		},
		"the label of an add-on on the request of a cluster": {
			as: agent10, asks: own, object: labelled(map[string]string{names.LabelAddonName: "hello"}), rules: unexpected,
		},
		"the empty label of an add-on on the request of a cluster": {
			as: agent10, asks: own, object: labelled(map[string]string{names.LabelAddonName: ""}),
		},
		"no label of an add-on on the request of an add-on": {
			as: agent10, asks: addon, rules: unexpected, object: func(request *certificatesv1.CertificateSigningRequest) {
				delete(request.Labels, names.LabelAddonName)
			},
		},
		"the label of cluster1 on a request for an add-on of cluster10": {
			as: agent10, asks: addon, object: labelled(map[string]string{names.LabelClusterName: "cluster1"}), rules: unexpected,
		},
		"the label of cluster10 on a request for an add-on of cluster1": {
			as: agent10, asks: forAddon("cluster1", "hello", kube),
			object: labelled(map[string]string{names.LabelClusterName: "cluster10"}), rules: unexpected,
		},
		"no labels at all": {
			as: agent10, asks: csr.ForCluster("cluster1", agentName),
			object: func(request *certificatesv1.CertificateSigningRequest) { request.Labels = nil },
		},
		"the empty label of a cluster": {
			as: agent10, asks: own, object: labelled(map[string]string{names.LabelClusterName: ""}),
		},
		"a label in capitals": {
			as: agent10, asks: own, object: labelled(map[string]string{names.LabelClusterName: "Cluster10"}),
			rules: rules(approve.ReasonClusterNameInvalid),
		},
		"the reserved name managed-clusters, asked for by a trusted user": {
			as: trusted, asks: csr.ForCluster("managed-clusters", agentName), rules: rules(approve.ReasonClusterNameReserved),
		},
		"the reserved name managed-clusters, asked for by an agent": {
			as: agent10, asks: csr.ForCluster("managed-clusters", agentName), rules: rules(approve.ReasonClusterNameReserved),
		},
		"an add-on of a cluster called managed-clusters": {
			as: agent10, asks: forAddon("managed-clusters", "hello", kube), rules: rules("ClusterNotFound"),
		},
	}
}
