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

// PathValidateWork is the path of the validation of ManifestWorks.
const PathValidateWork = "/validate-work-open-cluster-management-io-v1-manifestwork"

// Works validates the manifests of ManifestWorks.
type Works struct {
	// Limit is the limit for the manifests of one work together, in bytes; 0 means DefaultManifestLimit.
	Limit int
}

// Register adds the validation to a server.
func (w *Works) Register(server ctrlwebhook.Server) {
	server.Register(PathValidateWork, &admission.Webhook{Handler: admission.HandlerFunc(w.Check)})
}

// Check refuses a work that no agent could apply, with all errors at once. A refusal is a bad request, as in
// OCM.
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
