package attacks_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
)

// alternativeNames are requests with names that nobody expects.
func alternativeNames() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	san := asn1.ObjectIdentifier{2, 5, 29, 17}
	upn := []asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: []byte{6, 1, 42}}}
	all := map[string]forgery{
		"the DNS name of another add-on": {as: agent10, asks: addon,
			fields: func(r *csr.Request) { r.DNSNames = []string{"vault.addon.open-cluster-management.io"} }},
		"a wildcard instead of the DNS name": {as: agent10, asks: addon,
			fields: func(r *csr.Request) { r.DNSNames = []string{"*.addon.open-cluster-management.io"} }},
		"no DNS name for an add-on": {as: agent10, asks: addon, fields: func(r *csr.Request) { r.DNSNames = nil }},
		"a DNS name more for an add-on": {as: agent10, asks: addon,
			content: alternative([]string{"kubernetes.default.svc"}, nil, nil, nil)},
		"a DNS name for a cluster": {as: agent10, asks: own,
			content: alternative([]string{"kubernetes.default.svc"}, nil, nil, nil)},
		"an IP address": {as: agent10, asks: own, content: alternative(nil, nil, []net.IP{net.IPv4(10, 0, 0, 1)}, nil)},
		"an email address": {as: agent10, asks: own,
			content: alternative(nil, []string{"admin@example.com"}, nil, nil)},
		"a URI": {as: agent10, asks: own, content: alternative(nil, nil, nil,
			[]*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/kube-system/sa/default"}})},
		"a URI for an add-on": {as: agent10, asks: addon, content: alternative(nil, nil, nil,
			[]*url.URL{{Scheme: "https", Host: "hub"}})},
		"a name of a kind that nobody reads": {as: agent10, asks: own, content: extension(san, false, upn)},
		"an extension that makes a CA": {as: agent10, asks: own, content: extension(
			asn1.ObjectIdentifier{2, 5, 29, 19}, true, struct{ CA bool }{true})},
		"an extension with the usage of a server": {as: agent10, asks: own, content: extension(
			asn1.ObjectIdentifier{2, 5, 29, 37}, false, []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 1}})},
		"an extension of one's own": {as: agent10, asks: addon, content: extension(
			asn1.ObjectIdentifier{1, 2, 3, 4}, true, "x")},
	}
	for sentence, a := range all {
		a.rules = rules(approve.ReasonNamesNotExpected)
		all[sentence] = a
	}
	return all
}

// usages are requests with more or fewer usages than expected.
func usages() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	all := map[string]forgery{
		"the usage of a server for an add-on": {as: agent10, asks: addon, rules: rules(approve.ReasonUsagesNotExpected),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Usages = append(request.Spec.Usages, certificatesv1.UsageServerAuth)
			}},
	}
	for sentence, list := range map[string][]certificatesv1.KeyUsage{
		"the usage of a server more": append(csr.Usages(), certificatesv1.UsageServerAuth),
		"the usage of a server only": {certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
			certificatesv1.UsageServerAuth},
		"the usage of a CA more":        append(csr.Usages(), certificatesv1.UsageCertSign),
		"any usage":                     {certificatesv1.UsageAny},
		"the usage of code signing":     append(csr.Usages(), certificatesv1.UsageCodeSigning),
		"only the usage of a client":    {certificatesv1.UsageClientAuth},
		"no usage of a client":          csr.Usages()[:2],
		"one usage of the three less":   csr.Usages()[1:],
		"a usage of email for a client": append(csr.Usages(), certificatesv1.UsageEmailProtection),
	} {
		all[sentence] = forgery{as: agent10, asks: own, rules: rules(approve.ReasonUsagesNotExpected),
			object: func(request *certificatesv1.CertificateSigningRequest) { request.Spec.Usages = list }}
	}
	return all
}

// encodings are requests whose PEM is more than one plain block.
func encodings() map[string]forgery {
	own := csr.ForCluster("cluster10", agentName)
	all := map[string]forgery{}
	for sentence, change := range map[string]func(plain []byte) []byte{
		"a second one behind it": func(plain []byte) []byte { return append(bytes.Clone(plain), plain...) },
		"text behind it":         func(plain []byte) []byte { return append(bytes.Clone(plain), "and more"...) },
		"text in front of it":    func(plain []byte) []byte { return append([]byte("first\n"), plain...) },
		"headers in the block": func(plain []byte) []byte {
			block, _ := pem.Decode(plain)
			block.Headers = map[string]string{"open-cluster-management.io/csr-user": csr.ClusterUser("cluster1", agentName)}
			return pem.EncodeToMemory(block)
		},
		"two kilobytes of text behind it": func(plain []byte) []byte {
			return append(bytes.Clone(plain), strings.Repeat("x", 2000)...)
		},
	} {
		all["a PEM block with "+sentence] = forgery{as: agent10, asks: own, rules: rules(approve.ReasonRequestMalformed),
			object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Request = change(request.Spec.Request)
			}}
	}
	return all
}

// strengths are requests with weak keys, of great length, for a long time, or with strange names.
func strengths() map[string]forgery {
	own, addon := csr.ForCluster("cluster10", agentName), forAddon("cluster10", "hello", kube)
	long := func(seconds int32) func(*csr.Request) {
		return func(r *csr.Request) { r.ExpirationSeconds = ptr.To(seconds) }
	}
	named := func(name string) func(*certificatesv1.CertificateSigningRequest) {
		return func(request *certificatesv1.CertificateSigningRequest) { request.GenerateName, request.Name = "", name }
	}
	weak, unexpected := rules(approve.ReasonKeyNotAccepted), rules(approve.ReasonSubjectNotExpected)
	victim := csr.ForCluster("cluster1", agentName)
	return map[string]forgery{
		"an RSA key of 1024 bits":                    {as: agent10, asks: own, key: rsaKey(1024), rules: weak},
		"an RSA key of 1024 bits for an add-on":      {as: agent10, asks: addon, key: rsaKey(1024), rules: weak},
		"an ECDSA key of 224 bits":                   {as: agent10, asks: own, key: ecdsaKey(elliptic.P224()), rules: weak},
		"an ECDSA key of 224 bits by a trusted user": {as: trusted, asks: victim, key: ecdsaKey(elliptic.P224()), rules: weak},
		"a lifetime of ten years":                    {as: agent10, asks: own, fields: long(10 * 365 * 86400), rules: rules(approve.ReasonLifetimeTooLong)},
		"a lifetime of ten years for an add-on":      {as: agent10, asks: addon, fields: long(10 * 365 * 86400), rules: rules(approve.ReasonLifetimeTooLong)},
		"a lifetime of a leap year and a second":     {as: agent10, asks: own, fields: long(366*86400 + 1), rules: rules(approve.ReasonLifetimeTooLong)},
		"the longest lifetime that can be written":   {as: agent10, asks: own, fields: long(1<<31 - 1), rules: rules(approve.ReasonLifetimeTooLong)},
		"twenty organizations":                       {as: agent10, asks: own, fields: manyGroups(20), rules: unexpected},
		"an agent whose name is a kilobyte long":     {as: agent10, asks: own, fields: user(own.User + strings.Repeat("x", 1000)), rules: unexpected},
		"a common name of a kilobyte":                {as: agent10, asks: own, fields: user(strings.Repeat("x", 1000)), rules: unexpected},
		"a hundred organizations":                    {as: agent10, asks: own, fields: manyGroups(100), refused: tooLong},
		"an agent whose name is five kilobytes long": {as: agent10, asks: own, fields: user(own.User + strings.Repeat("x", 5000)), refused: tooLong},
		"a common name of five kilobytes":            {as: agent10, asks: own, fields: user(strings.Repeat("x", 5000)), refused: tooLong},
		"a hundred DNS names for an add-on":          {as: agent10, asks: addon, content: manyNames(100), rules: rules(approve.ReasonNamesNotExpected)},
		"an annotation of four kilobytes":            {as: agent10, asks: victim, object: annotated(4000), rules: rules(approve.ReasonRequesterNotTrusted)},
		"a request called like one of cluster1":      {as: agent10, asks: victim, object: named("cluster1-0123456789"), rules: rules(approve.ReasonRequesterNotTrusted)},
		"a request with capitals and signs as name":  {as: agent10, asks: victim, object: named("Cluster1: é {} \n"), rules: rules(approve.ReasonRequesterNotTrusted)},
		"a request with a name of 2000 characters":   {as: agent10, asks: victim, object: named(strings.Repeat("n", 2000)), rules: rules(approve.ReasonRequesterNotTrusted)},
	}
}

func manyGroups(n int) func(*csr.Request) {
	return func(r *csr.Request) {
		for range n {
			r.Groups = append(r.Groups, "group-of-a-request-that-is-too-long")
		}
	}
}

func manyNames(n int) func(*x509.CertificateRequest) {
	return func(template *x509.CertificateRequest) {
		for range n {
			template.DNSNames = append(template.DNSNames, "name.example.com")
		}
	}
}

// annotated adds an annotation of so many bytes.
func annotated(size int) func(*certificatesv1.CertificateSigningRequest) {
	return func(request *certificatesv1.CertificateSigningRequest) {
		request.Annotations = map[string]string{"a": strings.Repeat("x", size)}
	}
}
