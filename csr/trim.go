package csr

import (
	"cmp"
	"fmt"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// MaxRequestBytes is the largest spec.request that is judged. Those of agents have about 500 bytes, and one with
	// the largest key that is accepted, RSA of 8192 bits, has 4 KiB.
	MaxRequestBytes = 16 << 10
	// maxOtherBytes bounds the metadata and the requester of a request object, each.
	maxOtherBytes = 16 << 10
	// perEntry is the assumed overhead of one entry of a list or map.
	perEntry = 16
	// maxAgentRequestBytes is the largest spec.request that an agent keeps of others while it joins. Its own have an
	// ECDSA key.
	maxAgentRequestBytes = 4 << 10
	// annotationStub marks a request object that a cache does not hold in full; its value is the size of the dropped
	// fields. It exists in caches only.
	annotationStub = "spokelet.io/not-in-full"
)

// Trim is a transform for a cache of the hub that bounds the size of a request object. An object that is larger than
// any of an agent becomes a stub, which is judged TooLarge and never written back. The metadata of all others is kept,
// because approval and signing write it back.
func Trim(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil
	}
	csr.ManagedFields = nil
	if size := sizeBeyond(csr, MaxRequestBytes); size > 0 {
		makeStub(csr, size)
	} else if len(csr.Status.Certificate) > 0 {
		csr.Status.Certificate = issuedMark()
	}
	return csr, nil
}

// TrimForAgent returns a transform for a cache of an agent. While the agent serves, user is its user name on the hub,
// and requests of other users become stubs; while it joins, user is empty, and all that an agent could have made are
// kept.
func TrimForAgent(user string) func(any) (any, error) {
	return func(object any) (any, error) {
		csr, ok := object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return object, nil
		}
		csr.ManagedFields, csr.Annotations = nil, nil
		others := user != "" && csr.Spec.Username != user
		if size := sizeBeyond(csr, maxAgentRequestBytes); size > 0 || others {
			makeStub(csr, cmp.Or(size, len(csr.Spec.Request)))
		}
		csr.Spec.Extra, csr.Spec.Groups = nil, nil
		return csr, nil
	}
}

// TooLarge reports whether a request is larger than any that an agent makes.
func TooLarge(csr *certificatesv1.CertificateSigningRequest) bool {
	return isStub(csr) || sizeBeyond(csr, MaxRequestBytes) > 0
}

func tooLargeProblem() problem {
	return problem{ReasonRequestTooLarge, fmt.Sprintf("it is too large: spec.request may have %d bytes, and labels, "+
		"annotations and what is known of the requester %d", MaxRequestBytes, maxOtherBytes)}
}

// isStub reports whether a cache does not hold a request in full.
func isStub(csr *certificatesv1.CertificateSigningRequest) bool {
	_, stub := csr.Annotations[annotationStub]
	return stub
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

// makeStub drops all fields of a request but its identity, its labels, its requester and its progress.
func makeStub(csr *certificatesv1.CertificateSigningRequest, size int) {
	labels := map[string]string{}
	for _, name := range []string{names.LabelClusterName, names.LabelAddonName} {
		if value, ok := csr.Labels[name]; ok {
			labels[name] = value
		}
	}
	csr.ObjectMeta = metav1.ObjectMeta{
		Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion, Generation: csr.Generation,
		CreationTimestamp: csr.CreationTimestamp, DeletionTimestamp: csr.DeletionTimestamp,
		Labels: labels, Annotations: map[string]string{annotationStub: strconv.Itoa(size)},
	}
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: csr.Spec.SignerName, Username: shorten(csr.Spec.Username, maxAgentName),
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
