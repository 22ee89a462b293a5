package approve

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// maxExpirationSeconds is the longest lifetime that is approved without a person: a leap year. There is no
	// revocation, so a longer one is a decision.
	maxExpirationSeconds = 366 * 24 * 60 * 60
	// maxAgentName is the longest name of an agent: that of a Kubernetes object.
	maxAgentName = 253
	// maxMessage is the largest number of bytes of a verdict's message; an Event cannot have more.
	maxMessage = 1000
	// maxListed is the most values of a list of the request in a message.
	maxListed = 5
	// tagDNSName is the tag of a DNS name among alternative names (RFC 5280, GeneralName).
	tagDNSName = 2
)

// problem is one error of a request.
type problem struct{ reason, message string }

// asked is the content of a request, decoded without dropping anything that could end up in a certificate.
type asked struct {
	parsed *x509.CertificateRequest
	// commonNames, organizations and units are the attributes of the subject, in order.
	commonNames, organizations, units []string
	// otherAttributes are the OIDs of all other attributes of the subject.
	otherAttributes []string
	// dnsNames are the DNS names among the alternative names.
	dnsNames []string
	// otherNames describes the other alternative names, and otherExtensions the other extensions.
	otherNames, otherExtensions []string
	usages                      []certificatesv1.KeyUsage
	signer                      string
}

// decode reads the content of a request, or returns why that cannot be judged.
func decode(request *certificatesv1.CertificateSigningRequest) (asked, []problem) {
	if TooLarge(request) {
		return asked{}, []problem{{ReasonRequestTooLarge, fmt.Sprintf("it is too large: spec.request may have %d bytes, and "+
			"labels, annotations and what is known of the requester %d", MaxRequestBytes, maxOtherBytes)}}
	}
	parsed, err := csr.ParseStrictly(request.Spec.Request)
	if err != nil {
		return asked{}, []problem{{ReasonRequestMalformed, err.Error()}}
	}
	ask := asked{parsed: parsed, usages: request.Spec.Usages, signer: request.Spec.SignerName}
	ask.readSubject()
	if err := ask.readExtensions(); err != nil {
		return asked{}, []problem{{ReasonRequestMalformed, err.Error()}}
	}
	return ask, nil
}

// checkAlways checks the key, the signature and the lifetime, which have the same rules for every kind of request.
func checkAlways(request *certificatesv1.CertificateSigningRequest, ask asked) []problem {
	var problems []problem
	if complaint := csr.CheckKey(ask.parsed); complaint != "" {
		problems = append(problems, problem{ReasonKeyNotAccepted, complaint})
	}
	if wanted := request.Spec.ExpirationSeconds; wanted != nil && *wanted > maxExpirationSeconds {
		problems = append(problems, problem{ReasonLifetimeTooLong, fmt.Sprintf(
			"spec.expirationSeconds is %d, and more than %d (a year) needs a person", *wanted, maxExpirationSeconds)})
	}
	return problems
}

func (a *asked) readSubject() {
	lists := map[string]*[]string{
		"2.5.4.3": &a.commonNames, "2.5.4.10": &a.organizations, "2.5.4.11": &a.units,
	}
	for _, attribute := range a.parsed.Subject.Names {
		list, known := lists[attribute.Type.String()]
		value, text := attribute.Value.(string)
		if !known || !text {
			a.otherAttributes = append(a.otherAttributes, attribute.Type.String())
			continue
		}
		*list = append(*list, value)
	}
}

// readExtensions reads the alternative names in the raw, because the standard library drops the kinds it does not know.
func (a *asked) readExtensions() error {
	for _, extension := range a.parsed.Extensions {
		if !extension.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			a.otherExtensions = append(a.otherExtensions, extension.Id.String())
			continue
		}
		var general []asn1.RawValue
		rest, err := asn1.Unmarshal(extension.Value, &general)
		if err != nil || len(rest) > 0 {
			return errors.New("its alternative names cannot be decoded")
		}
		for _, name := range general {
			if name.Class == asn1.ClassContextSpecific && name.Tag == tagDNSName && !name.IsCompound {
				a.dnsNames = append(a.dnsNames, string(name.Bytes))
				continue
			}
			a.otherNames = append(a.otherNames, generalName(name.Tag))
		}
	}
	return nil
}

// generalName names the kinds of alternative names of RFC 5280.
func generalName(tag int) string {
	kinds := []string{"other name", "email address", "DNS name", "X.400 address", "directory name", "EDI party name",
		"URI", "IP address", "registered ID"}
	if tag >= 0 && tag < len(kinds) {
		return kinds[tag]
	}
	return fmt.Sprintf("name of kind %d", tag)
}

// compare returns every difference between a request and the expected one. The order within lists does not matter.
func compare(ask asked, expected csr.Request) []problem {
	var problems []problem
	note := func(reason, format string, args ...any) {
		problems = append(problems, problem{reason, fmt.Sprintf(format, args...)})
	}
	if ask.signer != expected.Signer {
		note(ReasonSignerNotExpected, "spec.signerName is %s and must be %s",
			message.Quote(ask.signer), message.Quote(expected.Signer))
	}
	if len(ask.commonNames) != 1 || ask.commonNames[0] != expected.User {
		note(ReasonSubjectNotExpected, "its common name is %s and must be %s",
			list(ask.commonNames), message.Quote(expected.User))
	}
	if !expectedOrganizations(ask.organizations, expected) {
		note(ReasonSubjectNotExpected, "its organizations are %s and must be exactly %s",
			list(ask.organizations), list(expected.Groups))
	}
	if !same(ask.units, expected.OrganizationalUnits) {
		note(ReasonSubjectNotExpected, "its organizational units are %s and must be exactly %s",
			list(ask.units), list(expected.OrganizationalUnits))
	}
	if len(ask.otherAttributes) > 0 {
		note(ReasonSubjectNotExpected, "its subject carries further attributes (%s), and none is allowed",
			list(ask.otherAttributes))
	}
	if !same(ask.dnsNames, expected.DNSNames) {
		note(ReasonNamesNotExpected, "its DNS names are %s and must be exactly %s",
			list(ask.dnsNames), list(expected.DNSNames))
	}
	if len(ask.otherNames) > 0 {
		note(ReasonNamesNotExpected, "it carries alternative names that are not allowed (%s)", list(ask.otherNames))
	}
	if len(ask.otherExtensions) > 0 {
		note(ReasonNamesNotExpected, "it asks for extensions that are not allowed (%s)", list(ask.otherExtensions))
	}
	if !same(ask.usages, csr.Usages()) {
		note(ReasonUsagesNotExpected, "spec.usages is %s and must be exactly %s", list(ask.usages), list(csr.Usages()))
	}
	return problems
}

// expectedOrganizations allows, besides the exact set, for what two generations of agents do: clusters that leave out
// the group of all clusters, and kubeClient registrations of add-ons that also name system:authenticated.
func expectedOrganizations(have []string, expected csr.Request) bool {
	if same(have, expected.Groups) {
		return true
	}
	if _, addon := expected.Labels[names.LabelAddonName]; !addon {
		return same(append(slices.Clone(have), csr.GroupManagedClusters), expected.Groups)
	}
	return expected.Signer == certificatesv1.KubeAPIServerClientSignerName && len(have) == 3 &&
		same(have, append(slices.Clone(expected.Groups), groupAuthenticated))
}

// expectCluster returns the expected request of the agent that the common name names. If the common name names no agent
// of the cluster, the result is a placeholder that equals no request.
func expectCluster(cluster string, ask asked) csr.Request {
	if len(ask.commonNames) == 1 {
		id, ok := csr.ParseClusterUser(ask.commonNames[0])
		if ok && id.Cluster == cluster && len(id.Agent) <= maxAgentName {
			return csr.ForCluster(cluster, id.Agent)
		}
	}
	return csr.ForCluster(cluster, "<agent>")
}

// expectAddon returns the expected requests with this signer, one per registration, or the problem if there is none. A
// registration without a subject allows the default of the agent as well as that of the hub.
func expectAddon(
	cluster, addon, signer string, registrations []addonv1beta1.RegistrationConfig,
) ([]csr.Request, problem) {
	var candidates []csr.Request
	var signers []string
	var refused string
	for _, registration := range registrations {
		expected, err := csr.ForAddon(cluster, addon, registration)
		if err != nil || byToken(registration) {
			continue // the definition reports a wrong registration to its author
		}
		if err := checkIdentity(cluster, addon, expected); err != nil {
			if expected.Signer == signer {
				refused = fmt.Sprintf("the definition of the add-on asks for what no add-on gets: %s", err)
			}
			continue
		}
		signers = append(signers, expected.Signer)
		if expected.Signer != signer {
			continue
		}
		candidates = append(candidates, expected)
		if registration.Type == addonv1beta1.KubeClient && noSubject(registration.KubeClient) {
			expected.Groups = csr.AddonGroups(cluster, addon)
			candidates = append(candidates, expected)
		}
	}
	switch {
	case len(candidates) == 0 && refused != "":
		return nil, problem{reasonIdentityNotOwn, refused}
	case len(signers) == 0:
		return nil, problem{ReasonSignerNotExpected, "the add-on registers no certificate on this cluster"}
	}
	return candidates, problem{ReasonSignerNotExpected, fmt.Sprintf(
		"spec.signerName is %s, but the add-on registers with %s only", message.Quote(signer), list(signers))}
}

// byToken reports whether the agent uses a token for this registration and so never requests a certificate.
func byToken(r addonv1beta1.RegistrationConfig) bool {
	return r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == "token"
}

func noSubject(config *addonv1beta1.KubeClientConfig) bool {
	return config == nil || (config.Subject.User == "" && len(config.Subject.Groups) == 0)
}

// checkCluster refuses names that no cluster can have, among them the one whose group would be that of all clusters.
func checkCluster(cluster string) []problem {
	if cluster == reservedCluster {
		return []problem{{ReasonClusterNameReserved, fmt.Sprintf(
			"the name %s is reserved: the group of such a cluster would be the group of all clusters; name it otherwise",
			message.Quote(cluster))}}
	}
	if found := validation.IsDNS1123Label(cluster); len(found) > 0 {
		return []problem{{ReasonClusterNameInvalid, fmt.Sprintf(
			"label %s is %s, which is no name of a cluster", names.LabelClusterName, message.Quote(cluster))}}
	}
	return nil
}

// same compares two lists regardless of their order.
func same[S ~string](have, want []S) bool {
	return slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(want)))
}

// list writes values of a request into a message, in the order of the alphabet, so that the message stays the same.
func list[S ~string](values []S) string {
	quoted := make([]string, 0, len(values))
	for _, value := range slices.Sorted(slices.Values(values)) {
		quoted = append(quoted, message.Quote(string(value)))
	}
	return "[" + message.List(quoted, maxListed, ", ") + "]"
}
