package csr

import (
	"fmt"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// MaxRequestBytes is the largest spec.request that is judged. Those of agents have about 500 bytes, and one with
	// the largest key that is accepted, RSA of 8192 bits, has 3 KiB.
	MaxRequestBytes = 4 << 10
	// maxOtherBytes bounds the metadata and the requester of a request object, each.
	maxOtherBytes = 16 << 10
	// perEntry is the assumed overhead of one entry of a list or map.
	perEntry = 16
	// annotationStub marks a request object that is larger than it may be; its value is its size. It exists in caches
	// only.
	annotationStub = "spokelet.io/not-in-full"
)

// Trim is a transform for a cache of the hub that keeps of a request object what is judged: its content, its two
// labels, its requester and its progress. Who approves or signs reads it from the API server first, because that writes
// the metadata back. An object that is larger than any of an agent becomes a stub without content, which is judged
// TooLarge.
func Trim(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	switch {
	case !ok, isStub(csr): // a transform may see an object twice
		return object, nil
	}
	if size := sizeBeyond(csr, MaxRequestBytes); size > 0 {
		makeStub(csr, size)
		return csr, nil
	}
	csr.ObjectMeta = identityOf(csr)
	csr.Spec.Extra, csr.Spec.UID = nil, ""
	if len(csr.Status.Certificate) > 0 {
		csr.Status.Certificate = issuedMark()
	}
	return csr, nil
}

// TooLarge reports whether a request is larger than any that an agent makes.
func TooLarge(csr *certificatesv1.CertificateSigningRequest) bool {
	return isStub(csr) || sizeBeyond(csr, MaxRequestBytes) > 0
}

func tooLargeProblem() problem {
	return problem{ReasonRequestTooLarge, fmt.Sprintf("it is too large: spec.request may have %d bytes, and labels, "+
		"annotations and what is known of the requester %d", MaxRequestBytes, maxOtherBytes)}
}

// isStub reports whether a cache does not hold a request in full. Everybody who may create a request may annotate it,
// but the API server stores none without content.
func isStub(csr *certificatesv1.CertificateSigningRequest) bool {
	_, marked := csr.Annotations[annotationStub]
	return marked && len(csr.Spec.Request) == 0
}

// sizeBeyond returns the size of a request that is larger than it may be, and zero for all others.
func sizeBeyond(csr *certificatesv1.CertificateSigningRequest, most int) int {
	request, meta, requester := len(csr.Spec.Request), sizeOfMeta(&csr.ObjectMeta), sizeOfRequester(&csr.Spec)
	if request > most || meta > maxOtherBytes || requester > maxOtherBytes {
		return request + meta + requester
	}
	return 0
}

func sizeOfMeta(meta *metav1.ObjectMeta) int {
	size := 0
	for _, m := range []map[string]string{meta.Labels, meta.Annotations} {
		for key, value := range m {
			size += perEntry + len(key) + len(value)
		}
	}
	for _, finalizer := range meta.Finalizers {
		size += perEntry + len(finalizer)
	}
	for i := range meta.OwnerReferences {
		owner := &meta.OwnerReferences[i]
		size += perEntry + len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}
	return size
}

func sizeOfRequester(spec *certificatesv1.CertificateSigningRequestSpec) int {
	size := len(spec.Username) + len(spec.UID)
	for _, group := range spec.Groups {
		size += perEntry + len(group)
	}
	for key, values := range spec.Extra {
		size += perEntry + len(key)
		for _, value := range values {
			size += perEntry + len(value)
		}
	}
	return size
}

// identityOf returns the metadata of a request by which it is found and judged.
func identityOf(csr *certificatesv1.CertificateSigningRequest) metav1.ObjectMeta {
	labels := make(map[string]string, 2)
	for _, name := range []string{names.LabelClusterName, names.LabelAddonName} {
		if value, ok := csr.Labels[name]; ok {
			labels[name] = value
		}
	}
	return metav1.ObjectMeta{
		Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion, Generation: csr.Generation,
		CreationTimestamp: csr.CreationTimestamp, DeletionTimestamp: csr.DeletionTimestamp, Labels: labels,
	}
}

// makeStub drops all fields of a request but its identity, its labels, its requester and its progress.
func makeStub(csr *certificatesv1.CertificateSigningRequest, size int) {
	csr.ObjectMeta = identityOf(csr)
	csr.Annotations = map[string]string{annotationStub: strconv.Itoa(size)}
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: csr.Spec.SignerName, Username: message.Cut(csr.Spec.Username, maxAgentName),
	}
	conditions := make([]certificatesv1.CertificateSigningRequestCondition, 0, len(csr.Status.Conditions))
	for _, c := range csr.Status.Conditions {
		conditions = append(conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: c.Type, Status: c.Status, LastUpdateTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	csr.Status.Conditions = conditions
	if len(csr.Status.Certificate) > 0 {
		csr.Status.Certificate = issuedMark()
	}
}

// issuedMark stands for a certificate in a request that needs none of its content.
func issuedMark() []byte { return []byte("-") }
