package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// PathMutate is where ManagedClusters are completed.
	PathMutate = "/mutate-cluster-open-cluster-management-io-v1-managedcluster"
	// PathValidate is where ManagedClusters are checked.
	PathValidate = "/validate-cluster-open-cluster-management-io-v1-managedcluster"
)

// Admission completes and checks ManagedClusters when they are written.
type Admission struct {
	// Client asks the API server who may do what.
	Client client.Client
	// Live reads namespaces, not from a cache.
	Live client.Reader
	// Clock tells the instant at which a taint is added.
	Clock clock.PassiveClock
}

// Register has a server serve the admission.
func (a *Admission) Register(server ctrlwebhook.Server) {
	server.Register(PathMutate, &admission.Webhook{Handler: admission.HandlerFunc(a.Complete)})
	server.Register(PathValidate, &admission.Webhook{Handler: admission.HandlerFunc(a.Check)})
}

// Complete answers with a patch of what is to be filled in, or refuses what the author may not write.
func (a *Admission) Complete(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	c := complete(before, after, a.Clock.Now())
	if len(c.wrong) > 0 {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, c.wrong)
	}
	raw, err := fill(request.Object.Raw, c)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, raw)
}

// Check refuses what cannot be, and what the author has no right to; it tells all of it at once.
func (a *Admission) Check(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	c := checkOf(before, after)
	forbidden, err := a.forbidden(ctx, request, c)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(c.wrong) > 0:
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, append(c.wrong, forbidden...))
	case len(forbidden) > 0:
		return refuse(http.StatusForbidden, metav1.StatusReasonForbidden, forbidden)
	}
	return admission.Allowed("")
}

// forbidden lists what keeps the author from the change.
func (a *Admission) forbidden(ctx context.Context, request admission.Request, c check) ([]string, error) {
	var all []string
	for _, r := range c.rights {
		review := r.review(&request.UserInfo)
		if err := a.Client.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("asking whether user %s is allowed %s: %w", request.UserInfo.Username, r.what, err)
		}
		if !review.Status.Allowed || review.Status.Denied {
			all = append(all, r.refusal(request.UserInfo.Username))
		}
	}
	if !c.namespace {
		return all, nil
	}
	var namespace corev1.Namespace
	err := a.Live.Get(ctx, types.NamespacedName{Name: nameOf(request)}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading namespace %s: %w", nameOf(request), err)
	case namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating:
		all = append(all, fmt.Sprintf("cluster %s cannot be accepted while namespace %s is being deleted; try again when it "+
			"is gone", namespace.Name, namespace.Name))
	}
	return all, nil
}

// nameOf returns the name of the cluster, also of one whose name the API server has just made up.
func nameOf(request admission.Request) string {
	if request.Name != "" {
		return request.Name
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return ""
	}
	return object.Name
}

// decode returns the cluster as it was, nil when it is created, and as it is to be.
func decode(request admission.Request) (before, after *clusterv1.ManagedCluster, err error) {
	after = &clusterv1.ManagedCluster{}
	if err := json.Unmarshal(request.Object.Raw, after); err != nil {
		return nil, nil, fmt.Errorf("decoding the ManagedCluster: %w", err)
	}
	switch request.Operation {
	case admissionv1.Create:
		return nil, after, nil
	case admissionv1.Update:
	case admissionv1.Delete, admissionv1.Connect:
		return nil, nil, fmt.Errorf("operation %s is not asked for", request.Operation)
	}
	before = &clusterv1.ManagedCluster{}
	if len(request.OldObject.Raw) == 0 {
		return nil, nil, errors.New("the ManagedCluster as it was is missing")
	}
	if err := json.Unmarshal(request.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("decoding the ManagedCluster as it was: %w", err)
	}
	return before, after, nil
}

// fill puts a completion into the JSON of a ManagedCluster; fields that we do not know stay.
func fill(raw []byte, c completion) ([]byte, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("decoding the ManagedCluster: %w", err)
	}
	if c.set != "" {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterv1beta2.ClusterSetLabel] = c.set
		u.SetLabels(labels)
	}
	if len(c.stamps) > 0 {
		spec, _ := u.Object["spec"].(map[string]any)
		taints, _ := spec["taints"].([]any)
		for i, stamp := range c.stamps {
			taint, isObject := taints[i].(map[string]any)
			if !isObject {
				return nil, fmt.Errorf("spec.taints[%d] is no object", i)
			}
			taint["timeAdded"] = metav1.NewTime(stamp).ToUnstructured()
		}
	}
	filled, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the ManagedCluster: %w", err)
	}
	return filled, nil
}

func refuse(code int32, reason metav1.StatusReason, why []string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: strings.Join(why, "; "),
		},
	}}
}
