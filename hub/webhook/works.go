package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// PathValidateWork is where ManifestWorks are checked.
	PathValidateWork = "/validate-work-open-cluster-management-io-v1-manifestwork"
	// WorkAdmissionName names the webhook configuration of ManifestWorks.
	WorkAdmissionName = "manifestworks.admission.spokelet.io"

	// respecified selects what must be checked: the API server counts a generation for every change but that of
	// metadata and status, so that the finalizers of agents never wait for us.
	respecified = "request.operation == 'CREATE' || " +
		"object.metadata.?generation.orValue(0) != oldObject.metadata.?generation.orValue(0)"
)

// Works checks ManifestWorks when they are written.
type Works struct {
	// Client asks the API server who may do what.
	Client client.Client
	// Limit is how many bytes the manifests of one work may have together; 0 means DefaultManifestLimit.
	Limit int
	// NilExecutor asks for a right for works without an executor, too (gate NilExecutorValidating).
	NilExecutor bool
}

// Register has a server serve the checks.
func (w *Works) Register(server ctrlwebhook.Server) {
	server.Register(PathValidateWork, &admission.Webhook{Handler: admission.HandlerFunc(w.Check)})
}

// Check refuses a work that no agent could apply, and an executor that its author may not choose; it tells all of it at
// once. Whatever is refused is a bad request, as in the contract.
func (w *Works) Check(ctx context.Context, request admission.Request) admission.Response {
	after, before := &workv1.ManifestWork{}, (*workv1.ManifestWork)(nil)
	if err := json.Unmarshal(request.Object.Raw, after); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the ManifestWork: %w", err))
	}
	if request.Operation == admissionv1.Update {
		before = &workv1.ManifestWork{}
		if err := json.Unmarshal(request.OldObject.Raw, before); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the ManifestWork as it was: %w", err))
		}
	}
	after.Namespace = request.Namespace
	limit := w.Limit
	if limit == 0 {
		limit = DefaultManifestLimit
	}
	wrong := wrongManifests(after, limit)
	if needed := executing(before, after, w.NilExecutor); needed != nil {
		review := needed.review(&request.UserInfo)
		if err := w.Client.Create(ctx, review); err != nil {
			return admission.Errored(http.StatusInternalServerError,
				fmt.Errorf("asking whether user %s is allowed %s: %w", request.UserInfo.Username, needed.what, err))
		}
		if !review.Status.Allowed || review.Status.Denied {
			a := needed.attributes
			wrong = append(wrong, fmt.Sprintf("user %q is not allowed %s: that takes the verb %s on resource %s in API group %s",
				request.UserInfo.Username, needed.what, a.Verb, a.Resource, a.Group))
		}
	}
	if len(wrong) > 0 {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, wrong)
	}
	return admission.Allowed("")
}

// ValidatingWorks returns the configuration that has the API server ask for checks of ManifestWorks.
func ValidatingWorks(s Serving) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := Validating(s)
	c.Name = WorkAdmissionName
	scope := admissionregistrationv1.NamespacedScope
	hook := &c.Webhooks[0]
	hook.Name, hook.ClientConfig = "check."+WorkAdmissionName, s.At(PathValidateWork)
	hook.MatchConditions = conditions(s, "to-be-checked", respecified)
	rule := &hook.Rules[0].Rule
	rule.APIGroups, rule.APIVersions = []string{workv1.GroupName}, []string{workv1.GroupVersion.Version}
	rule.Resources, rule.Scope = []string{"manifestworks"}, &scope
	return c
}
