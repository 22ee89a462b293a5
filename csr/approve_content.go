package csr

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// maxExpirationSeconds is the longest lifetime that is approved without a person: a leap year. There is no
	// revocation, so a longer one is a decision.
	maxExpirationSeconds = 366 * 24 * 60 * 60
	// minRSABits and maxRSABits bound the RSA keys that are accepted.
	minRSABits, maxRSABits = 2048, 8192
	// minECDSABits is the smallest ECDSA key that is accepted.
	minECDSABits = 256
	// maxAgentName is the longest name of an agent: that of a Kubernetes object.
	maxAgentName = 253
	// maxMessage is the largest number of bytes of a verdict's message; an Event cannot have more.
	maxMessage = 1000
	// maxQuoted is the most bytes of one value of the request in a message, and maxListed the most values of a list.
	maxQuoted, maxListed = 100, 5
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

// decode reads the content of a request.
func decode(csr *certificatesv1.CertificateSigningRequest) (asked, error) {
	parsed, err := parseStrictly(csr.Spec.Request)
	if err != nil {
		return asked{}, err
	}
	ask := asked{parsed: parsed, usages: csr.Spec.Usages, signer: csr.Spec.SignerName}
	ask.readSubject()
	return ask, ask.readExtensions()
}

// checkAlways checks the key, the signature and the lifetime, which have the same rules for every kind of request.
func checkAlways(csr *certificatesv1.CertificateSigningRequest, ask asked) []problem {
	var problems []problem
	if complaint := checkKey(ask.parsed); complaint != "" {
		problems = append(problems, problem{ReasonKeyNotAccepted, complaint})
	}
	if wanted := csr.Spec.ExpirationSeconds; wanted != nil && *wanted > maxExpirationSeconds {
		problems = append(problems, problem{ReasonLifetimeTooLong, fmt.Sprintf(
			"spec.expirationSeconds is %d, and more than %d (a year) needs a person", *wanted, maxExpirationSeconds)})
	}
	return problems
}

// parseStrictly decodes spec.request, which must be one PEM block and nothing besides.
func parseStrictly(request []byte) (*x509.CertificateRequest, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(request), []byte("-----BEGIN "+pemRequest+"-----")) {
		return nil, fmt.Errorf("spec.request must be one PEM block of type %s", pemRequest)
	}
	block, rest := pem.Decode(request)
	if block == nil || block.Type != pemRequest || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("spec.request must be one PEM block of type %s without headers", pemRequest)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request cannot be decoded (%s)", message.Cut(err.Error(), maxQuoted))
	}
	return parsed, nil
}

// checkKey accepts the keys that present clients use, if they signed the request; otherwise it returns the problems.
func checkKey(parsed *x509.CertificateRequest) string {
	switch key := parsed.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if size := key.Curve.Params().BitSize; size < minECDSABits {
			return fmt.Sprintf("its ECDSA key has %d bits, and %d are needed", size, minECDSABits)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		if size := key.N.BitLen(); size < minRSABits || size > maxRSABits {
			return fmt.Sprintf("its RSA key has %d bits, and must have %d to %d", size, minRSABits, maxRSABits)
		}
	default:
		return "its key is neither ECDSA nor Ed25519 nor RSA"
	}
	if err := parsed.CheckSignature(); err != nil {
		return "it is not signed by the key that it carries"
	}
	return ""
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
func compare(ask asked, expected Request) []problem {
	var problems []problem
	note := func(reason, format string, args ...any) {
		problems = append(problems, problem{reason, fmt.Sprintf(format, args...)})
	}
	if ask.signer != expected.Signer {
		note(ReasonSignerNotExpected, "spec.signerName is %s and must be %s", quote(ask.signer), quote(expected.Signer))
	}
	if len(ask.commonNames) != 1 || ask.commonNames[0] != expected.User {
		note(ReasonSubjectNotExpected, "its common name is %s and must be %s", list(ask.commonNames), quote(expected.User))
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
	if !same(ask.usages, Usages()) {
		note(ReasonUsagesNotExpected, "spec.usages is %s and must be exactly %s", list(ask.usages), list(Usages()))
	}
	return problems
}

// expectedOrganizations allows, besides the exact set, for what two generations of agents do: clusters that leave out
// the group of all clusters, and kubeClient registrations of add-ons that also name system:authenticated.
func expectedOrganizations(have []string, expected Request) bool {
	if same(have, expected.Groups) {
		return true
	}
	if _, addon := expected.Labels[names.LabelAddonName]; !addon {
		return same(append(slices.Clone(have), GroupManagedClusters), expected.Groups)
	}
	return expected.Signer == certificatesv1.KubeAPIServerClientSignerName && len(have) == 3 &&
		same(have, append(slices.Clone(expected.Groups), groupAuthenticated))
}

// expectCluster returns the expected request of the agent that the common name names. If the common name names no agent
// of the cluster, the result is a placeholder that equals no request.
func expectCluster(cluster string, ask asked) Request {
	if len(ask.commonNames) == 1 {
		id, ok := ParseClusterUser(ask.commonNames[0])
		if ok && id.Cluster == cluster && len(id.Agent) <= maxAgentName {
			return ForCluster(cluster, id.Agent)
		}
	}
	return ForCluster(cluster, "<agent>")
}

// expectAddon returns the expected requests with this signer, one per registration, or the problem if there is none. A
// registration without a subject allows the default of the agent as well as that of the hub.
func expectAddon(
	cluster, addon, signer string, registrations []addonv1beta1.RegistrationConfig,
) ([]Request, problem) {
	var candidates []Request
	var signers []string
	var refused string
	for _, registration := range registrations {
		expected, err := ForAddon(cluster, addon, registration)
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
			expected.Groups = AddonGroups(cluster, addon)
			candidates = append(candidates, expected)
		}
	}
	switch {
	case len(candidates) == 0 && refused != "":
		return nil, problem{ReasonIdentityNotOwn, refused}
	case len(signers) == 0:
		return nil, problem{ReasonSignerNotExpected, "the add-on registers no certificate on this cluster"}
	}
	return candidates, problem{ReasonSignerNotExpected, fmt.Sprintf(
		"spec.signerName is %s, but the add-on registers with %s only", quote(signer), list(signers))}
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
			quote(cluster))}}
	}
	if found := validation.IsDNS1123Label(cluster); len(found) > 0 {
		return []problem{{ReasonClusterNameInvalid, fmt.Sprintf(
			"label %s is %s, which is no name of a cluster", names.LabelClusterName, quote(cluster))}}
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
		quoted = append(quoted, quote(string(value)))
	}
	return "[" + message.List(quoted, maxListed, ", ") + "]"
}

// quote writes a value that anybody may have chosen into a message: one line, printable, of bounded length.
func quote(value string) string { return fmt.Sprintf("%q", message.Cut(value, maxQuoted)) }
