package addonapi

import (
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// ReservedNoDefault is the name of a v1beta1 default config that means "this resource may be configured, but has no
// default". It exists only in v1beta1, and never names a config.
const ReservedNoDefault = "__reserved_no_default__"

// AddOnToBeta converts a ManagedClusterAddOn to v1beta1; the result shares no memory with in.
func AddOnToBeta(in *addonv1alpha1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	if in == nil {
		return nil
	}
	src := in.DeepCopy()
	out := &addonv1beta1.ManagedClusterAddOn{
		TypeMeta:   typeMeta(addonv1beta1.GroupVersion.String(), "ManagedClusterAddOn"),
		ObjectMeta: src.ObjectMeta,
		Spec:       addonv1beta1.ManagedClusterAddOnSpec{Configs: each(src.Spec.Configs, configToBeta)},
		Status:     addOnStatusToBeta(&src.Status),
	}
	if namespace := src.Spec.InstallNamespace; namespace != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, names.AnnotationInstallNamespace, namespace)
	}
	return out
}

// AddOnToAlpha converts a ManagedClusterAddOn to v1alpha1; the result shares no memory with in. A custom signer
// registration without a signer, and a config reference without a config, cannot be expressed there and are dropped:
// v1alpha1 would refuse every later write to the object.
func AddOnToAlpha(in *addonv1beta1.ManagedClusterAddOn) *addonv1alpha1.ManagedClusterAddOn {
	if in == nil {
		return nil
	}
	src := in.DeepCopy()
	out := &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   typeMeta(addonv1alpha1.GroupVersion.String(), "ManagedClusterAddOn"),
		ObjectMeta: src.ObjectMeta,
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{Configs: each(src.Spec.Configs, configToAlpha)},
		Status:     addOnStatusToAlpha(&src.Status),
	}
	out.Spec.InstallNamespace = takeAnnotation(&out.ObjectMeta, names.AnnotationInstallNamespace)
	return out
}

func addOnStatusToBeta(src *addonv1alpha1.ManagedClusterAddOnStatus) addonv1beta1.ManagedClusterAddOnStatus {
	return addonv1beta1.ManagedClusterAddOnStatus{
		Conditions: src.Conditions,
		RelatedObjects: each(src.RelatedObjects, func(o addonv1alpha1.ObjectReference) addonv1beta1.ObjectReference {
			return addonv1beta1.ObjectReference(o)
		}),
		AddOnMeta:        addonv1beta1.AddOnMeta(src.AddOnMeta),
		SupportedConfigs: each(src.SupportedConfigs, groupResourceToBeta),
		ConfigReferences: each(src.ConfigReferences, configReferenceToBeta),
		Namespace:        src.Namespace,
		Registrations: each(src.Registrations, func(r addonv1alpha1.RegistrationConfig) addonv1beta1.RegistrationConfig {
			return registrationToBeta(r, src.KubeClientDriver)
		}),
		HealthCheck: addonv1beta1.HealthCheck{Mode: addonv1beta1.HealthCheckMode(src.HealthCheck.Mode)},
	}
}

func addOnStatusToAlpha(src *addonv1beta1.ManagedClusterAddOnStatus) addonv1alpha1.ManagedClusterAddOnStatus {
	return addonv1alpha1.ManagedClusterAddOnStatus{
		Conditions: src.Conditions,
		RelatedObjects: each(src.RelatedObjects, func(o addonv1beta1.ObjectReference) addonv1alpha1.ObjectReference {
			return addonv1alpha1.ObjectReference(o)
		}),
		AddOnMeta:        addonv1alpha1.AddOnMeta(src.AddOnMeta),
		SupportedConfigs: each(src.SupportedConfigs, groupResourceToAlpha),
		ConfigReferences: eachThat(src.ConfigReferences, configReferenceToAlpha),
		Namespace:        src.Namespace,
		Registrations:    eachThat(src.Registrations, registrationToAlpha),
		HealthCheck:      addonv1alpha1.HealthCheck{Mode: addonv1alpha1.HealthCheckMode(src.HealthCheck.Mode)},
		KubeClientDriver: kubeClientDriver(src.Registrations),
	}
}

// registrationToBeta converts a registration by its signer; driver is that of the whole add-on.
func registrationToBeta(src addonv1alpha1.RegistrationConfig, driver string) addonv1beta1.RegistrationConfig {
	subject := addonv1beta1.BaseSubject{User: src.Subject.User, Groups: src.Subject.Groups}
	if src.SignerName == certificatesv1.KubeAPIServerClientSignerName {
		return addonv1beta1.RegistrationConfig{
			Type: addonv1beta1.KubeClient,
			KubeClient: &addonv1beta1.KubeClientConfig{
				Subject: addonv1beta1.KubeClientSubject{BaseSubject: subject},
				Driver:  driver,
			},
		}
	}
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner,
		CustomSigner: &addonv1beta1.CustomSignerConfig{
			SignerName: src.SignerName,
			Subject: addonv1beta1.Subject{
				BaseSubject:       subject,
				OrganizationUnits: src.Subject.OrganizationUnits,
			},
		},
	}
}

func registrationToAlpha(src addonv1beta1.RegistrationConfig) (addonv1alpha1.RegistrationConfig, bool) {
	switch {
	case src.Type == addonv1beta1.KubeClient:
		out := addonv1alpha1.RegistrationConfig{SignerName: certificatesv1.KubeAPIServerClientSignerName}
		if kube := src.KubeClient; kube != nil {
			out.Subject = addonv1alpha1.Subject{User: kube.Subject.User, Groups: kube.Subject.Groups}
		}
		return out, true
	case src.CustomSigner != nil && src.CustomSigner.SignerName != "":
		custom := src.CustomSigner
		return addonv1alpha1.RegistrationConfig{
			SignerName: custom.SignerName,
			Subject: addonv1alpha1.Subject{
				User:              custom.Subject.User,
				Groups:            custom.Subject.Groups,
				OrganizationUnits: custom.Subject.OrganizationUnits,
			},
		}, true
	}
	return addonv1alpha1.RegistrationConfig{}, false
}

// kubeClientDriver returns the driver of the first kube client registration that has one.
func kubeClientDriver(registrations []addonv1beta1.RegistrationConfig) string {
	for _, r := range registrations {
		if r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver != "" {
			return r.KubeClient.Driver
		}
	}
	return ""
}

// configReferenceToBeta drops the deprecated name, unless only it names the config.
func configReferenceToBeta(src addonv1alpha1.ConfigReference) addonv1beta1.ConfigReference {
	out := addonv1beta1.ConfigReference{
		ConfigGroupResource:    groupResourceToBeta(src.ConfigGroupResource),
		LastObservedGeneration: src.LastObservedGeneration,
		DesiredConfig:          specHashToBeta(src.DesiredConfig),
		LastAppliedConfig:      specHashToBeta(src.LastAppliedConfig),
	}
	if out.DesiredConfig == nil && out.LastAppliedConfig == nil && src.Name != "" {
		out.DesiredConfig = &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent(src.ConfigReferent),
		}
	}
	return out
}

// configReferenceToAlpha sets the deprecated name, which v1alpha1 requires.
func configReferenceToAlpha(src addonv1beta1.ConfigReference) (addonv1alpha1.ConfigReference, bool) {
	out := addonv1alpha1.ConfigReference{
		ConfigGroupResource:    groupResourceToAlpha(src.ConfigGroupResource),
		LastObservedGeneration: src.LastObservedGeneration,
		DesiredConfig:          specHashToAlpha(src.DesiredConfig),
		LastAppliedConfig:      specHashToAlpha(src.LastAppliedConfig),
	}
	switch {
	case out.DesiredConfig != nil:
		out.ConfigReferent = out.DesiredConfig.ConfigReferent
	case out.LastAppliedConfig != nil:
		out.ConfigReferent = out.LastAppliedConfig.ConfigReferent
	}
	return out, out.Name != ""
}

func configToBeta(src addonv1alpha1.AddOnConfig) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: groupResourceToBeta(src.ConfigGroupResource),
		ConfigReferent:      addonv1beta1.ConfigReferent(src.ConfigReferent),
	}
}

func configToAlpha(src addonv1beta1.AddOnConfig) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: groupResourceToAlpha(src.ConfigGroupResource),
		ConfigReferent:      addonv1alpha1.ConfigReferent(src.ConfigReferent),
	}
}

func groupResourceToBeta(src addonv1alpha1.ConfigGroupResource) addonv1beta1.ConfigGroupResource {
	return addonv1beta1.ConfigGroupResource(src)
}

func groupResourceToAlpha(src addonv1beta1.ConfigGroupResource) addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource(src)
}

func specHashToBeta(src *addonv1alpha1.ConfigSpecHash) *addonv1beta1.ConfigSpecHash {
	if src == nil {
		return nil
	}
	return &addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent(src.ConfigReferent),
		SpecHash:       src.SpecHash,
	}
}

func specHashToAlpha(src *addonv1beta1.ConfigSpecHash) *addonv1alpha1.ConfigSpecHash {
	if src == nil {
		return nil
	}
	return &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: addonv1alpha1.ConfigReferent(src.ConfigReferent),
		SpecHash:       src.SpecHash,
	}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// takeAnnotation removes an annotation and returns its value. It replaces the map, which may become nil.
func takeAnnotation(object *metav1.ObjectMeta, key string) string {
	value, found := object.Annotations[key]
	if !found {
		return ""
	}
	left := maps.Clone(object.Annotations)
	delete(left, key)
	if len(left) == 0 {
		left = nil
	}
	object.Annotations = left
	return value
}

// each converts the items of a list; nil stays nil.
func each[A, B any](items []A, convert func(A) B) []B {
	return eachThat(items, func(item A) (B, bool) { return convert(item), true })
}

// eachThat converts the items of a list and drops those that cannot be converted; nil stays nil.
func eachThat[A, B any](items []A, convert func(A) (B, bool)) []B {
	if items == nil {
		return nil
	}
	out := make([]B, 0, len(items))
	for _, item := range items {
		if converted, ok := convert(item); ok {
			out = append(out, converted)
		}
	}
	return out
}

// AlphaPositions returns the index that each registration and each config reference of an add-on has in v1alpha1; -1
// for one that v1alpha1 cannot express.
func AlphaPositions(in *addonv1beta1.ManagedClusterAddOn) (registrations, references []int) {
	return positions(in.Status.Registrations, registrationToAlpha),
		positions(in.Status.ConfigReferences, configReferenceToAlpha)
}

// positions returns the index of each item among those that can be converted; -1 for one that cannot.
func positions[A, B any](items []A, convert func(A) (B, bool)) []int {
	all, next := make([]int, 0, len(items)), 0
	for _, item := range items {
		if _, ok := convert(item); !ok {
			all = append(all, -1)
			continue
		}
		all = append(all, next)
		next++
	}
	return all
}
