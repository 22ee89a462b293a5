package attacks_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
)

// commonNames are requests of an agent for itself that are right but for the common name.
func commonNames() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	all := map[string]forgery{}
	for sentence, name := range map[string]string{
		"the common name of another cluster":                      csr.ClusterUser("cluster1", agentName),
		"the common name of another cluster that begins the same": csr.ClusterUser("cluster100", agentName),
		"the common name of an add-on":                            csr.AddonUser("cluster10", "hello", "hello-agent"),
		"a common name without agent":                             csr.ClusterUser("cluster10", ""),
		"a common name without cluster":                           csr.ClusterUser("", agentName),
		"a common name with a third part":                         csr.ClusterUser("cluster10", "a:b"),
		"a common name in capitals":                               strings.ToUpper(own.User),
		"a common name with a capital":                            csr.ClusterUser("Cluster10", agentName),
		"a common name with a dot behind the cluster":             csr.ClusterUser("cluster10.", agentName),
		"a common name with a Cyrillic letter":                    csr.ClusterUser("\u0441luster10", agentName),
		"a common name with a space in front":                     " " + own.User,
		"a common name with a zero byte":                          csr.ClusterUser("cluster10\x00", agentName),
		"the common name of an administrator":                     "system:admin",
		"the common name of a component of Kubernetes":            "system:kube-controller-manager",
		"the common name of a ServiceAccount":                     "system:serviceaccount:kube-system:default",
		"the common name of a node":                               "system:node:control-plane",
		"no common name":                                          "",
	} {
		all[sentence] = forgery{as: agent10, asks: own, fields: user(name), rules: rules(approve.ReasonSubjectNotExpected)}
	}
	for sentence, name := range map[string]string{
		"the common name of the add-on on another cluster":          csr.AddonUser("cluster1", "hello", "hello-agent"),
		"the common name of another add-on":                         csr.AddonUser("cluster10", "vault", "vault-agent"),
		"the common name of another agent of the add-on":            csr.AddonUser("cluster10", "hello", "other"),
		"the common name of the agent of the cluster for an add-on": own.User,
		"the common name of the ServiceAccount of an add-on":        "system:serviceaccount:cluster1:hello-agent",
	} {
		all[sentence] = forgery{as: agent10, asks: addon, fields: user(name), rules: rules(approve.ReasonSubjectNotExpected)}
	}
	return all
}

// organizations are requests of an agent for itself that are right but for an organization.
func organizations() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	unexpected := rules(approve.ReasonSubjectNotExpected)
	all := map[string]forgery{
		"the organization of another cluster only": {as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups[0] = csr.ClusterGroup("cluster1") }},
		"the organization of a cluster of which ours is the beginning": {as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups[0] = csr.ClusterGroup("cluster100") }},
		"an organization in capitals": {as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups[0] = strings.ToUpper(r.Groups[0]) }},
		"only the organization of all clusters": {as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups = r.Groups[1:] }},
		"no organization": {as: agent10, asks: own, rules: unexpected, fields: func(r *csr.Request) { r.Groups = nil }},
		"an organization twice": {as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups[1] = r.Groups[0] }},
		"the organizations of the add-on on another cluster": {as: agent10, asks: addon, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups = csr.AddonGroups("cluster1", "hello") }},
		"one organization of the add-on too few": {as: agent10, asks: addon, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups = r.Groups[:1] }},
		"the organization of older agents and one more": {as: agent10, asks: addon, rules: unexpected,
			fields: func(r *csr.Request) { r.Groups = append(r.Groups, "system:authenticated", "more") }},
		"an organization more, asked for by a trusted user": {as: trusted, asks: csr.ForCluster("cluster1", agentName),
			fields: extraGroup("cluster-admins"), rules: unexpected},
		"an organization more, asked for by the bootstrap ServiceAccount": {as: bootstrap,
			asks: csr.ForCluster("cluster1", agentName), fields: extraGroup("cluster-admins"), rules: unexpected},
	}
	for _, group := range []string{
		csr.ClusterGroup("cluster1"), csr.ClusterGroupIAM("cluster1"), "system:nodes", "system:authenticated",
		"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:bootstrappers:managedcluster",
		"kubeadm:cluster-admins", "system:monitoring",
	} {
		all["organization "+group+" more for a cluster"] = forgery{
			as: agent10, asks: own, fields: extraGroup(group), rules: unexpected}
	}
	for _, group := range []string{
		csr.ClusterGroup("cluster1"), csr.ClusterGroup("cluster10"), csr.GroupManagedClusters, "system:nodes",
		csr.AddonGroups("cluster1", "hello")[0], csr.AddonGroups("cluster10", "vault")[1], "system:unauthenticated",
	} {
		all["organization "+group+" more for an add-on"] = forgery{
			as: agent10, asks: addon, fields: extraGroup(group), rules: unexpected}
	}
	return all
}

// attributes are requests whose subject holds more than it should, or in an unusual form.
func attributes() map[string]forgery {
	own := csr.ForCluster("cluster10", agentName)
	cn, one := attribute(oidCommonName(), own.User), attribute(oidOrganization(), own.Groups[0])
	victim := attribute(oidCommonName(), csr.ClusterUser("cluster1", agentName))
	set := func(all ...pkix.AttributeTypeAndValue) pkix.RelativeDistinguishedNameSET { return all }
	unexpected := rules(approve.ReasonSubjectNotExpected)
	return map[string]forgery{
		"two common names, the other cluster's last":  {as: agent10, asks: own, content: further(victim), rules: unexpected},
		"two common names, the other cluster's first": {as: agent10, asks: own, content: subject(set(victim), set(cn), set(one)), rules: unexpected},
		"twice the same common name":                  {as: agent10, asks: own, content: further(cn), rules: unexpected},
		"two common names in one relative name":       {as: agent10, asks: own, content: subject(set(cn, victim), set(one)), rules: unexpected},
		"an organization hidden beside the common name in one relative name": {
			as: agent10, asks: own, rules: unexpected,
			content: subject(set(cn, attribute(oidOrganization(), csr.ClusterGroup("cluster1"))), set(one)),
		},
		"a common name that is no text": {
			as: agent10, asks: own, rules: unexpected,
			content: subject(set(attribute(oidCommonName(), 7)), set(one)),
		},
		"a common name in a second, binary form": {
			as: agent10, asks: own, rules: unexpected,
			content: further(attribute(oidCommonName(), asn1.RawValue{Tag: asn1.TagOctetString, Bytes: []byte("x")})),
		},
		"an organizational unit": {
			as: agent10, asks: own, rules: unexpected,
			fields: func(r *csr.Request) { r.OrganizationalUnits = []string{"unit"} },
		},
		"a serial number in the subject": {
			as: agent10, asks: own, content: further(attribute(oidSerial(), "1")), rules: unexpected,
		},
		"a user ID in the subject": {
			as: agent10, asks: own, content: further(attribute(oidUserID(), "0")), rules: unexpected,
		},
		"an empty subject": {as: agent10, asks: own, content: subject(), rules: unexpected},
	}
}
