package approve

import (
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
	request, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok || isStub(request) { // a transform may see an object twice
		return object, nil
	}
	size := sizeBeyond(request)
	request.ObjectMeta = identityOf(request)
	if size > 0 {
		makeStub(request, size)
	}
	request.Spec.Extra, request.Spec.UID = nil, ""
	if len(request.Status.Certificate) > 0 {
		request.Status.Certificate = []byte("-") // the judgement needs none of its content
	}
	return request, nil
}

// TooLarge reports whether a request is larger than any that an agent makes.
func TooLarge(request *certificatesv1.CertificateSigningRequest) bool {
	return isStub(request) || sizeBeyond(request) > 0
}

// isStub reports whether a cache does not hold a request in full. Everybody who may create a request may annotate it,
// but the API server stores none without content.
func isStub(request *certificatesv1.CertificateSigningRequest) bool {
	_, marked := request.Annotations[annotationStub]
	return marked && len(request.Spec.Request) == 0
}

// sizeBeyond returns the size of a request that is larger than it may be, and zero for all others.
func sizeBeyond(request *certificatesv1.CertificateSigningRequest) int {
	content, meta, requester := len(request.Spec.Request), sizeOfMeta(&request.ObjectMeta), sizeOfRequester(&request.Spec)
	if content > MaxRequestBytes || meta > maxOtherBytes || requester > maxOtherBytes {
		return content + meta + requester
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
func identityOf(request *certificatesv1.CertificateSigningRequest) metav1.ObjectMeta {
	labels := make(map[string]string, 2)
	for _, name := range []string{names.LabelClusterName, names.LabelAddonName} {
		if value, ok := request.Labels[name]; ok {
			labels[name] = value
		}
	}
	return metav1.ObjectMeta{
		Name: request.Name, UID: request.UID, ResourceVersion: request.ResourceVersion, Generation: request.Generation,
		CreationTimestamp: request.CreationTimestamp, DeletionTimestamp: request.DeletionTimestamp, Labels: labels,
	}
}

// makeStub drops of a request all but its metadata, its signer, its requester and its progress.
func makeStub(request *certificatesv1.CertificateSigningRequest, size int) {
	request.Annotations = map[string]string{annotationStub: strconv.Itoa(size)}
	request.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: request.Spec.SignerName, Username: message.Cut(request.Spec.Username, maxAgentName),
	}
	conditions := make([]certificatesv1.CertificateSigningRequestCondition, 0, len(request.Status.Conditions))
	for _, c := range request.Status.Conditions {
		conditions = append(conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: c.Type, Status: c.Status, LastUpdateTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	request.Status.Conditions = conditions
}
