package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PathValidateWork is where ManifestWorks are checked.
const PathValidateWork = "/validate-work-open-cluster-management-io-v1-manifestwork"

// Works checks the manifests of ManifestWorks when they are written.
type Works struct {
	// Limit is how many bytes the manifests of one work may have together; 0 means DefaultManifestLimit.
	Limit int
}

// Register has a server serve the checks.
func (w *Works) Register(server ctrlwebhook.Server) {
	server.Register(PathValidateWork, &admission.Webhook{Handler: admission.HandlerFunc(w.Check)})
}

// Check refuses a work that no agent could apply; it tells all that is wrong at once. Whatever is refused is a bad
// request, as in the contract.
func (w *Works) Check(_ context.Context, request admission.Request) admission.Response {
	work := &workv1.ManifestWork{}
	if err := json.Unmarshal(request.Object.Raw, work); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the ManifestWork: %w", err))
	}
	limit := w.Limit
	if limit == 0 {
		limit = DefaultManifestLimit
	}
	wrong := wrongManifests(work, limit)
	if len(wrong) == 0 {
		return admission.Allowed("")
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Message: strings.Join(wrong, "; "),
	}}}
}
