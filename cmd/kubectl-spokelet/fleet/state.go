package fleet

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// State is what a hub has besides clusters and add-ons. A bundle has it as it is.
type State struct {
	// Managers are the Deployments in the namespace of hub managers, and Leases the Leases there.
	Managers []Manager `json:"managers"`
	Leases   []Lease   `json:"leases"`
	// Policies are the names of its admission policies, and Bound of those of which a binding denies.
	Policies []string `json:"policies"`
	Bound    []string `json:"bound"`
	// Webhook reports whether its add-ons are converted between versions by a webhook, Silent that this does not answer,
	// and Ends when the authorities by which the API server knows it end.
	Webhook bool        `json:"webhook"`
	Silent  bool        `json:"silent"`
	Ends    []time.Time `json:"ends"`
}

// Manager is a Deployment in the namespace of hub managers.
type Manager struct {
	Name string `json:"name"`
	// Version is the tag of its first image; empty where that has none.
	Version string `json:"version,omitempty"`
	// Wanted is how many pods it is to have, and Ready how many are ready.
	Wanted int32 `json:"wanted"`
	Ready  int32 `json:"ready"`
}

// managerOf returns what counts of a Deployment.
func managerOf(d *appsv1.Deployment) Manager {
	m := Manager{Name: d.Name, Wanted: 1, Ready: d.Status.ReadyReplicas}
	if d.Spec.Replicas != nil {
		m.Wanted = *d.Spec.Replicas
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(container.Image, "@")
		if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
			m.Version = image[i+1:]
			break
		}
	}
	return m
}

// CustomResourceDefinitions are the definitions of kinds.
func CustomResourceDefinitions() Resource {
	return Resource{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}
}

// admission returns a resource of admission.
func admission(plural string) Resource {
	return Resource{Group: admissionregistrationv1.GroupName, Version: "v1", Plural: plural}
}

// ofState are the resources of which a state is made.
func ofState() []Resource {
	return []Resource{
		Deployments(), admission("validatingadmissionpolicies"), admission("validatingadmissionpolicybindings"),
		CustomResourceDefinitions(),
	}
}

// definition is the part of a CustomResourceDefinition that says how it is converted.
type definition struct {
	Spec struct {
		Conversion struct {
			Webhook *struct {
				ClientConfig struct {
					CABundle []byte `json:"caBundle"`
				} `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
		Versions []struct {
			Name            string `json:"name"`
			Served, Storage bool
		} `json:"versions"`
	} `json:"spec"`
}

// ReadState reads the state of a hub; nil where a bundle has none. What may not be read is a gap.
func ReadState(ctx context.Context, r *Reader) (*State, error) {
	s := &State{}
	if bundle, is := r.Source.(*Bundle); is {
		return bundle.state(r)
	}
	deployments, err := Read[appsv1.Deployment](ctx, r, Query{Resource: Deployments(), Namespace: names.NamespaceHub})
	if err != nil {
		return s, err
	}
	for i := range deployments {
		s.Managers = append(s.Managers, managerOf(&deployments[i]))
	}
	if s.Leases, err = List[Lease](ctx, r, Query{Namespace: names.NamespaceHub}); err != nil {
		return s, err
	}
	of := Query{Resource: admission("validatingadmissionpolicies"), Partial: true}
	policies, err := Read[struct{ Metadata Meta }](ctx, r, of)
	if err != nil {
		return s, err
	}
	for _, policy := range policies {
		s.Policies = append(s.Policies, policy.Metadata.Name)
	}
	type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	bindings, err := Read[binding](ctx, r, Query{Resource: admission("validatingadmissionpolicybindings")})
	if err != nil {
		return s, err
	}
	for i := range bindings {
		if slices.Contains(bindings[i].Spec.ValidationActions, admissionregistrationv1.Deny) {
			s.Bound = append(s.Bound, bindings[i].Spec.PolicyName)
		}
	}
	return s, s.readConversion(ctx, r)
}

// readConversion reads how add-ons are converted, and asks for one in the version that is not stored.
func (s *State) readConversion(ctx context.Context, r *Reader) error {
	name := "managedclusteraddons." + addonv1beta1.GroupName
	found, err := Read[definition](ctx, r, Query{Resource: CustomResourceDefinitions(), Name: name})
	if err != nil || len(found) == 0 || found[0].Spec.Conversion.Webhook == nil {
		return err
	}
	s.Webhook, s.Ends = true, endsOf(found[0].Spec.Conversion.Webhook.ClientConfig.CABundle)
	hub, is := r.Source.(*Hub)
	if !is {
		return nil
	}
	for _, version := range found[0].Spec.Versions {
		if !version.Served || version.Storage {
			continue
		}
		path := "/apis/" + addonv1beta1.GroupName + "/" + version.Name + "/managedclusteraddons"
		_, err := answer(ctx, hub.client.Get().AbsPath(path).Param("limit", "1"))
		s.Silent = s.Silent || unconverted(err) // Other errors are gaps of what reads add-ons.
	}
	return nil
}

// endsOf returns when the certificates of a bundle end.
func endsOf(bundle []byte) []time.Time {
	var ends []time.Time
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return ends
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			ends = append(ends, certificate.NotAfter)
		}
	}
}
