package attacks_test

import (
	"crypto/elliptic"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// signer replaces the signer of a request.
func signer(name string) func(*csr.Request) { return func(r *csr.Request) { r.Signer = name } }

// otherSigners are requests for a signer that is not the one of the credential.
func otherSigners() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	node := func(r *csr.Request) { r.User, r.Groups = "system:node:control-plane", []string{"system:nodes"} }
	unexpected := rules(approve.ReasonSignerNotExpected)
	all := map[string]forgery{
		"the signer of kubelets, as a node": {as: agent10, asks: own, fields: func(r *csr.Request) {
			node(r)
			r.Signer = certificatesv1.KubeletServingSignerName
		}, object: func(request *certificatesv1.CertificateSigningRequest) {
			request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
				certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth}
		}},
		"the client signer of kubelets, as a node": {as: agent10, asks: own, fields: func(r *csr.Request) {
			node(r)
			r.Signer = certificatesv1.KubeAPIServerClientKubeletSignerName
		}},
		"a custom signer with the request of a cluster": {as: agent10, asks: own, fields: signer("example.com/rsa")},
		"a signer of a peer that nobody serves here": {as: agent10, asks: own,
			fields: signer("open-cluster-management.io/grpc")},
		"a signer of a peer for an add-on": {as: agent10, asks: addon, fields: signer("open-cluster-management.io/grpc"),
			rules: unexpected},
		"the signer of kubelets for an add-on": {as: agent10, asks: addon,
			fields: signer(certificatesv1.KubeletServingSignerName), rules: unexpected},
		"the signer of an add-on on another's request": {as: agent10, asks: addon, fields: signer("example.com/ecdsa"),
			rules: unexpected},
		"a signer whose name begins like that of the add-on": {as: agent10, asks: addon, fields: signer("example.com/rsa2"),
			rules: unexpected},
		"the custom signer with the subject of the hub credential": {as: agent10, asks: addon,
			fields: signer("example.com/rsa"), rules: rules(approve.ReasonSubjectNotExpected)},
		"the signer of the API server with the subject of the custom signer": {as: agent10,
			asks:   forAddon("cluster10", "hello", custom),
			fields: signer(certificatesv1.KubeAPIServerClientSignerName), rules: rules(approve.ReasonSubjectNotExpected)},
	}
	return all
}

// customRequests are requests for the custom signers, one with an RSA CA and one with an ECDSA CA.
func customRequests() map[string]forgery {
	all := map[string]forgery{}
	for addon, ca := range map[string]string{"hello": "the RSA CA", "vault": "the ECDSA CA"} {
		own := forAddon("cluster1", addon, custom)
		unexpected := rules(approve.ReasonSubjectNotExpected)
		for sentence, a := range map[string]forgery{
			"another cluster":             {as: agent10, rules: rules(approve.ReasonRequesterNotTrusted)},
			"the add-on itself":           {as: hello1, rules: rules(approve.ReasonRequesterNotTrusted)},
			"another common name":         {as: agent1, fields: user("admin"), rules: unexpected},
			"one more organization":       {as: agent1, fields: extraGroup("admins"), rules: unexpected},
			"the group of all who log in": {as: agent1, fields: extraGroup("system:authenticated"), rules: unexpected},
			"no organization":             {as: agent1, fields: func(r *csr.Request) { r.Groups = nil }, rules: unexpected},
			"another unit": {as: agent1, rules: unexpected,
				fields: func(r *csr.Request) { r.OrganizationalUnits = []string{"other"} }},
			"the name of a server": {as: agent1, rules: rules(approve.ReasonNamesNotExpected),
				content: alternative([]string{"vault.example.com"}, nil, nil, nil)},
			"the usage of a server": {as: agent1, rules: rules(approve.ReasonUsagesNotExpected),
				object: func(request *certificatesv1.CertificateSigningRequest) {
					request.Spec.Usages = append(request.Spec.Usages, certificatesv1.UsageServerAuth)
				}},
			"a weak key": {as: agent1, key: ecdsaKey(elliptic.P224()), rules: rules(approve.ReasonKeyNotAccepted)},
			"ten years": {as: agent1, rules: rules(approve.ReasonLifetimeTooLong),
				fields: func(r *csr.Request) { r.ExpirationSeconds = ptr.To[int32](10 * 365 * 86400) }},
		} {
			a.asks = own
			all["a request to "+ca+" with or from "+sentence] = a
		}
	}
	return all
}

// byHand are requests that a person approved without looking: they must still not be signed.
func byHand() map[string]forgery {
	own := forAddon("cluster1", "hello", custom)
	first := func(rule string) []string { return rules(rule, "NotSigned") }
	all := map[string]forgery{
		"for another common name": {as: agent1, asks: own, fields: user("admin"), rules: first(approve.ReasonSubjectNotExpected)},
		"for one more organization": {as: agent10, asks: own, fields: extraGroup("system:masters"),
			rules: first(approve.ReasonSubjectNotExpected)},
		"for the name of a server": {as: agent1, asks: own, rules: first(approve.ReasonNamesNotExpected),
			content: alternative([]string{"hub.example.com"}, nil, nil, nil)},
		"for the usage of a server": {as: agent1, asks: own, rules: first(approve.ReasonUsagesNotExpected),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Usages = append(request.Spec.Usages, certificatesv1.UsageServerAuth)
			}},
		"for a weak key": {as: agent1, asks: own, key: rsaKey(1024), rules: first(approve.ReasonKeyNotAccepted)},
		"with a PEM block too many": {as: agent1, asks: own, rules: first(approve.ReasonRequestMalformed),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Request = []byte(strings.Repeat(string(request.Spec.Request), 2))
			}},
		"with the subject of another add-on": {as: agent1, asks: forAddon("cluster1", "vault", custom),
			fields: signer("example.com/rsa"), rules: rules(approve.ReasonSignerNotExpected)},
		"with the labels of another add-on": {as: agent1, asks: own, rules: rules(approve.ReasonSignerNotExpected),
			object: labelled(map[string]string{names.LabelAddonName: "vault"})},
		"for an add-on that is not enabled": {as: agent10, asks: forAddon("cluster10", "vault", custom),
			rules: rules("AddonNotFound")},
		"for a denied cluster":  {as: denied, asks: forAddon("denied", "hello", custom), rules: rules("ClusterNotAccepted")},
		"for a deleted cluster": {as: gone, asks: forAddon("gone", "hello", custom), rules: rules("ClusterNotFound")},
		"without the label of an add-on": {as: agent1, asks: own,
			object: func(request *certificatesv1.CertificateSigningRequest) {
				delete(request.Labels, names.LabelAddonName)
			}},
	}
	named := make(map[string]forgery, len(all))
	for sentence, a := range all {
		a.byHand = true
		named["approved by hand for a custom signer "+sentence] = a
	}
	return named
}
