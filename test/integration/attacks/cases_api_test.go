package attacks_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// refusedContents are requests whose content the API server itself refuses.
func refusedContents() map[string]forgery {
	all := map[string]forgery{}
	for sentence, c := range map[string]struct {
		change func(plain []byte) []byte
		words  string
	}{
		"nothing":         {func([]byte) []byte { return nil }, "PEM block type must be CERTIFICATE REQUEST"},
		"no PEM":          {func([]byte) []byte { return []byte("hello") }, "PEM block type must be CERTIFICATE REQUEST"},
		"half of a block": {func(plain []byte) []byte { return plain[:len(plain)/2] }, "PEM block type must be CERTIFICATE REQUEST"},
		"another block in front of it": {func(plain []byte) []byte {
			return append([]byte("-----BEGIN NOTHING-----\n-----END NOTHING-----\n"), plain...)
		}, "PEM block type must be CERTIFICATE REQUEST"},
		"an older PEM type": {retyped("NEW CERTIFICATE REQUEST"), "PEM block type must be CERTIFICATE REQUEST"},
		"a certificate":     {func([]byte) []byte { return certificate() }, "PEM block type must be CERTIFICATE REQUEST"},
		"a certificate in the block of a request": {func([]byte) []byte {
			return retyped("CERTIFICATE REQUEST")(certificate())
		}, "asn1"},
		"no ASN.1":                     {func([]byte) []byte { return encoded([]byte("hello")) }, "asn1"},
		"bytes behind the ASN.1":       {inside(func(der []byte) []byte { return append(der, 0) }), "trailing data"},
		"ASN.1 that is cut off":        {inside(func(der []byte) []byte { return der[:len(der)-1] }), "asn1"},
		"a signature of somebody else": {inside(flipLast), "verification failure"},
		"a name changed after it was signed": {inside(func(der []byte) []byte {
			return []byte(strings.Replace(string(der), "cluster10:", "cluster1x:", 1))
		}), "verification failure"},
		"two megabytes behind the block": {func(plain []byte) []byte {
			return append(plain, strings.Repeat("x", 2_000_000)...)
		}, tooLong},
		"a megabyte behind the block": {func(plain []byte) []byte {
			return append(plain, strings.Repeat("x", 1_000_000)...)
		}, tooLong},
		"twenty kilobytes behind the block": {func(plain []byte) []byte {
			return append(plain, strings.Repeat("x", 20_000)...)
		}, tooLong},
		"four megabytes behind the block": {func(plain []byte) []byte {
			return append(plain, strings.Repeat("x", 4_000_000)...)
		}, "too large"},
	} {
		all["a request that holds "+sentence] = forgery{as: agent10, asks: csr.ForCluster("cluster10", agentName),
			refused: c.words, object: func(request *certificatesv1.CertificateSigningRequest) {
				request.Spec.Request = c.change(request.Spec.Request)
			}}
	}
	return all
}

// tooLong is the text of the policy on the sizes of requests.
const tooLong = "spec.request of a request for the credential of a cluster or an add-on may have 4096 bytes"

// refusedForms are requests whose other fields the API server itself refuses.
func refusedForms() map[string]forgery {
	own := csr.ForCluster("cluster10", agentName)
	with := func(words string, change func(*certificatesv1.CertificateSigningRequest)) forgery {
		return forgery{as: agent10, asks: own, refused: words, object: change}
	}
	usages := func(list ...certificatesv1.KeyUsage) func(*certificatesv1.CertificateSigningRequest) {
		return func(request *certificatesv1.CertificateSigningRequest) { request.Spec.Usages = list }
	}
	cluster := func(name string) func(*certificatesv1.CertificateSigningRequest) {
		return labelled(map[string]string{names.LabelClusterName: name})
	}
	seconds := func(n int32) func(*certificatesv1.CertificateSigningRequest) {
		return func(request *certificatesv1.CertificateSigningRequest) { request.Spec.ExpirationSeconds = ptr.To(n) }
	}
	label := "a valid label must be"
	return map[string]forgery{
		"no usages":                      with("spec.usages: Required value", usages()),
		"a usage that does not exist":    with("Unsupported value", usages("client auth", "magic")),
		"a usage twice":                  with("Duplicate value", usages(append(csr.Usages(), certificatesv1.UsageClientAuth)...)),
		"the signer of old versions":     with("the legacy signerName is not allowed", signedBy("kubernetes.io/legacy-unknown")),
		"a signer without a domain":      with("spec.signerName", signedBy("signer")),
		"no signer":                      with("spec.signerName", signedBy("")),
		"a lifetime of a second":         with("may not specify a duration less than 600 seconds", seconds(1)),
		"a lifetime below nothing":       with("may not specify a duration less than 600 seconds", seconds(-1)),
		"a label with colons":            with(label, cluster("cluster1:agent1")),
		"a label with a dot at its end":  with(label, cluster("cluster1.")),
		"a label with a Cyrillic letter": with(label, cluster("\u0441luster1")),
		"a label with a space":           with(label, cluster("cluster1 ")),
		"a label that is too long":       with("must be no more than 63", cluster(strings.Repeat("c", 64))),
		"annotations of more than a quarter of a megabyte": with("Too long", func(request *certificatesv1.CertificateSigningRequest) {
			request.Annotations = map[string]string{"a": strings.Repeat("x", 300_000)}
		}),
		"an annotation of 200 kilobytes": with("may have 16 annotations of 4096 bytes in all", annotated(200_000)),
		"ten thousand organizations":     {as: agent10, asks: own, fields: manyGroups(10_000), refused: tooLong},
		"an agent whose name is half a megabyte long": {
			as: agent10, asks: own, fields: user(own.User + strings.Repeat("x", 500_000)), refused: tooLong,
		},
		"a common name of half a megabyte, by a trusted user": {
			as: trusted, asks: own, fields: user(strings.Repeat("x", 500_000)), refused: tooLong,
		},
		"a thousand DNS names for an add-on": {
			as: agent10, asks: forAddon("cluster10", "hello", kube), content: manyNames(1000), refused: tooLong,
		},
		"the group of administrators": {as: agent10, asks: own, fields: extraGroup("system:masters"),
			refused: `use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`},
		"the group of administrators for an add-on": {as: agent10, asks: forAddon("cluster10", "hello", kube),
			fields: extraGroup("system:masters"), refused: `system:masters group is not allowed`},
		"the group of administrators by a trusted user": {as: trusted, asks: csr.ForCluster("cluster1", agentName),
			fields: extraGroup("system:masters"), refused: `system:masters group is not allowed`},
	}
}

func signedBy(name string) func(*certificatesv1.CertificateSigningRequest) {
	return func(request *certificatesv1.CertificateSigningRequest) { request.Spec.SignerName = name }
}

// retyped gives a PEM block another type.
func retyped(kind string) func([]byte) []byte {
	return func(plain []byte) []byte {
		block, _ := pem.Decode(plain)
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes})
	}
}

// inside changes what is in a PEM block.
func inside(change func(der []byte) []byte) func([]byte) []byte {
	return func(plain []byte) []byte {
		block, _ := pem.Decode(plain)
		return encoded(change(block.Bytes))
	}
}

// flipLast spoils the signature, which is the last thing in a request.
func flipLast(der []byte) []byte {
	der[len(der)-1] ^= 1
	return der
}

// certificate is some certificate; empty if none can be made.
func certificate() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "some"}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
