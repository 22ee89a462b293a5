package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	labelAddOn   = "open-cluster-management.io/addon-name"
	labelCluster = "open-cluster-management.io/cluster-name"
)

// report writes what the manager knows of an add-on. Other fields of the status are those of others.
func (m *crew) report(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, work *workv1.ManifestWork) error {
	before := addOn.Status.DeepCopy()
	addOn.Status.Namespace = crewNamespace
	addOn.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckModeCustomized
	addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Subject:    addonv1alpha1.Subject{User: crewUser(addOn.Namespace), Groups: []string{crewGroup}},
	}}
	conditions := []metav1.Condition{condition("RegistrationApplied", true, "SetPermissionApplied",
		"the registration and the permission are set")}
	if _, quiet := addOn.Annotations[crewQuiet]; !quiet {
		applied := meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkApplied)
		conditions = append(conditions, condition("ManifestApplied", applied, "CrewReported", "as the work says"))
	}
	available := meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable)
	conditions = append(conditions, condition("Available", available, "CrewReported", "as the work says"))
	for _, c := range conditions {
		meta.SetStatusCondition(&addOn.Status.Conditions, c)
	}
	if equality.Semantic.DeepEqual(before, &addOn.Status) {
		return nil
	}
	_, err := m.addOns.AddonV1alpha1().ManagedClusterAddOns(addOn.Namespace).UpdateStatus(ctx, addOn,
		metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// approve approves the requests of agents of the add-on that ask for what their cluster registered, and for nothing
// else.
func (m *crew) approve(ctx context.Context) error {
	requests := m.kube.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{LabelSelector: labelAddOn + "=" + crewName})
	if err != nil {
		return fmt.Errorf("listing certificate requests: %w", err)
	}
	for i := range list.Items {
		request := &list.Items[i]
		if decided(request) || !asks(request, crewUser(request.Labels[labelCluster])) {
			continue
		}
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Crew",
			Message: "it is an agent of the crew",
		})
		if _, err := requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("approving request %s: %w", request.Name, err)
		}
	}
	return nil
}

func decided(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
	})
}

// asks reports whether a request is for the certificate of a user of the crew.
func asks(request *certificatesv1.CertificateSigningRequest, user string) bool {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && parsed.Subject.CommonName == user &&
		slices.Equal(parsed.Subject.Organization, []string{crewGroup})
}

// whoAmI returns as whom the hub knows a client.
func whoAmI(ctx context.Context, hub kubernetes.Interface) (authenticationv1.UserInfo, error) {
	review, err := hub.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("asking who I am: %w", err)
	}
	return review.Status.UserInfo, nil
}
