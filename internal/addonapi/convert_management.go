package addonapi

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// ClusterManagementAddOnToBeta converts a ClusterManagementAddOn to v1beta1; the result shares no memory with in. An
// annotation carries the deprecated field spec.addOnConfiguration, which v1beta1 lacks.
func ClusterManagementAddOnToBeta(in *addonv1alpha1.ClusterManagementAddOn) *addonv1beta1.ClusterManagementAddOn {
	if in == nil {
		return nil
	}
	src := in.DeepCopy()
	out := &addonv1beta1.ClusterManagementAddOn{
		TypeMeta:   typeMeta(addonv1beta1.GroupVersion.String(), "ClusterManagementAddOn"),
		ObjectMeta: src.ObjectMeta,
		Spec: addonv1beta1.ClusterManagementAddOnSpec{
			AddOnMeta:      addonv1beta1.AddOnMeta(src.Spec.AddOnMeta),
			DefaultConfigs: each(src.Spec.SupportedConfigs, defaultConfigToBeta),
			InstallStrategy: addonv1beta1.InstallStrategy{
				Type:       src.Spec.InstallStrategy.Type,
				Placements: each(src.Spec.InstallStrategy.Placements, placementToBeta),
			},
		},
		Status: addonv1beta1.ClusterManagementAddOnStatus{
			DefaultConfigReferences: each(src.Status.DefaultConfigReferences, defaultReferenceToBeta),
			InstallProgressions:     each(src.Status.InstallProgressions, progressionToBeta),
		},
	}
	putAddOnConfiguration(&out.ObjectMeta, src.Spec.AddOnConfiguration)
	return out
}

// ClusterManagementAddOnToAlpha converts a ClusterManagementAddOn to v1alpha1; the result shares no memory with in.
func ClusterManagementAddOnToAlpha(in *addonv1beta1.ClusterManagementAddOn) *addonv1alpha1.ClusterManagementAddOn {
	if in == nil {
		return nil
	}
	src := in.DeepCopy()
	out := &addonv1alpha1.ClusterManagementAddOn{
		TypeMeta:   typeMeta(addonv1alpha1.GroupVersion.String(), "ClusterManagementAddOn"),
		ObjectMeta: src.ObjectMeta,
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			AddOnMeta:        addonv1alpha1.AddOnMeta(src.Spec.AddOnMeta),
			SupportedConfigs: each(src.Spec.DefaultConfigs, defaultConfigToAlpha),
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type:       src.Spec.InstallStrategy.Type,
				Placements: each(src.Spec.InstallStrategy.Placements, placementToAlpha),
			},
		},
		Status: addonv1alpha1.ClusterManagementAddOnStatus{
			DefaultConfigReferences: each(src.Status.DefaultConfigReferences, defaultReferenceToAlpha),
			InstallProgressions:     each(src.Status.InstallProgressions, progressionToAlpha),
		},
	}
	out.Spec.AddOnConfiguration = takeAddOnConfiguration(&out.ObjectMeta)
	return out
}

// HasDefault reports whether an entry of spec.defaultConfigs names a config, rather than only a resource that may be
// configured.
func HasDefault(config addonv1beta1.AddOnConfig) bool {
	return config.Name != "" && config.Name != ReservedNoDefault
}

func defaultConfigToBeta(src addonv1alpha1.ConfigMeta) addonv1beta1.AddOnConfig {
	out := addonv1beta1.AddOnConfig{ConfigGroupResource: groupResourceToBeta(src.ConfigGroupResource)}
	if src.DefaultConfig == nil || src.DefaultConfig.Name == "" {
		out.Name = ReservedNoDefault
		return out
	}
	out.ConfigReferent = addonv1beta1.ConfigReferent(*src.DefaultConfig)
	return out
}

func defaultConfigToAlpha(src addonv1beta1.AddOnConfig) addonv1alpha1.ConfigMeta {
	out := addonv1alpha1.ConfigMeta{ConfigGroupResource: groupResourceToAlpha(src.ConfigGroupResource)}
	if HasDefault(src) {
		referent := addonv1alpha1.ConfigReferent(src.ConfigReferent)
		out.DefaultConfig = &referent
	}
	return out
}

func placementToBeta(src addonv1alpha1.PlacementStrategy) addonv1beta1.PlacementStrategy {
	return addonv1beta1.PlacementStrategy{
		PlacementRef:    addonv1beta1.PlacementRef(src.PlacementRef),
		Configs:         each(src.Configs, configToBeta),
		RolloutStrategy: src.RolloutStrategy,
	}
}

func placementToAlpha(src addonv1beta1.PlacementStrategy) addonv1alpha1.PlacementStrategy {
	return addonv1alpha1.PlacementStrategy{
		PlacementRef:    addonv1alpha1.PlacementRef(src.PlacementRef),
		Configs:         each(src.Configs, configToAlpha),
		RolloutStrategy: src.RolloutStrategy,
	}
}

func defaultReferenceToBeta(src addonv1alpha1.DefaultConfigReference) addonv1beta1.DefaultConfigReference {
	return addonv1beta1.DefaultConfigReference{
		ConfigGroupResource: groupResourceToBeta(src.ConfigGroupResource),
		DesiredConfig:       specHashToBeta(src.DesiredConfig),
	}
}

func defaultReferenceToAlpha(src addonv1beta1.DefaultConfigReference) addonv1alpha1.DefaultConfigReference {
	return addonv1alpha1.DefaultConfigReference{
		ConfigGroupResource: groupResourceToAlpha(src.ConfigGroupResource),
		DesiredConfig:       specHashToAlpha(src.DesiredConfig),
	}
}

func progressionToBeta(src addonv1alpha1.InstallProgression) addonv1beta1.InstallProgression {
	return addonv1beta1.InstallProgression{
		PlacementRef:     addonv1beta1.PlacementRef(src.PlacementRef),
		ConfigReferences: each(src.ConfigReferences, installReferenceToBeta),
		Conditions:       src.Conditions,
	}
}

func progressionToAlpha(src addonv1beta1.InstallProgression) addonv1alpha1.InstallProgression {
	return addonv1alpha1.InstallProgression{
		PlacementRef:     addonv1alpha1.PlacementRef(src.PlacementRef),
		ConfigReferences: each(src.ConfigReferences, installReferenceToAlpha),
		Conditions:       src.Conditions,
	}
}

func installReferenceToBeta(src addonv1alpha1.InstallConfigReference) addonv1beta1.InstallConfigReference {
	return addonv1beta1.InstallConfigReference{
		ConfigGroupResource: groupResourceToBeta(src.ConfigGroupResource),
		DesiredConfig:       specHashToBeta(src.DesiredConfig),
		LastKnownGoodConfig: specHashToBeta(src.LastKnownGoodConfig),
		LastAppliedConfig:   specHashToBeta(src.LastAppliedConfig),
	}
}

func installReferenceToAlpha(src addonv1beta1.InstallConfigReference) addonv1alpha1.InstallConfigReference {
	return addonv1alpha1.InstallConfigReference{
		ConfigGroupResource: groupResourceToAlpha(src.ConfigGroupResource),
		DesiredConfig:       specHashToAlpha(src.DesiredConfig),
		LastKnownGoodConfig: specHashToAlpha(src.LastKnownGoodConfig),
		LastAppliedConfig:   specHashToAlpha(src.LastAppliedConfig),
	}
}

// putAddOnConfiguration stores a spec field that v1beta1 lacks in an annotation, so that an edit through v1beta1 does
// not delete it. Only the spec may be carried so: annotations are written with the rights for the object, not for its
// status.
func putAddOnConfiguration(object *metav1.ObjectMeta, config addonv1alpha1.ConfigCoordinates) {
	if config == (addonv1alpha1.ConfigCoordinates{}) {
		return
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return
	}
	metav1.SetMetaDataAnnotation(object, names.AnnotationAddOnConfiguration, string(raw))
}

// takeAddOnConfiguration is the inverse of putAddOnConfiguration. An invalid annotation stays.
func takeAddOnConfiguration(object *metav1.ObjectMeta) addonv1alpha1.ConfigCoordinates {
	var config addonv1alpha1.ConfigCoordinates
	raw, found := object.Annotations[names.AnnotationAddOnConfiguration]
	if !found || json.Unmarshal([]byte(raw), &config) != nil {
		return addonv1alpha1.ConfigCoordinates{}
	}
	takeAnnotation(object, names.AnnotationAddOnConfiguration)
	return config
}
