package addonapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

const (
	kubeSigner     = "kubernetes.io/kube-apiserver-client"
	customSigner   = "example.com/signer"
	installKey     = "addon.open-cluster-management.io/v1alpha1-install-namespace"
	addOnConfigKey = "addon.spokelet.io/v1alpha1-addon-configuration"
)

func TestAddOnToBeta(t *testing.T) {
	tests := map[string]struct {
		in   addonv1alpha1.ManagedClusterAddOn
		want addonv1beta1.ManagedClusterAddOn
	}{
		"the install namespace becomes an annotation beside the others": {
			in: addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k": "v"}},
				Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "ns"},
			},
			want: addonv1beta1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k": "v", installKey: "ns"}},
			},
		},
		"without an install namespace there is no annotation": {},
		"registrations are sorted by signer and get the driver of the add-on": {
			in: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				KubeClientDriver: "token",
				Registrations: []addonv1alpha1.RegistrationConfig{
					{SignerName: kubeSigner, Subject: addonv1alpha1.Subject{
						User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"dropped"},
					}},
					{SignerName: customSigner, Subject: addonv1alpha1.Subject{
						User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"ou"},
					}},
				},
			}},
			want: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				Registrations: []addonv1beta1.RegistrationConfig{kubeClient("u", "token", "g"), {
					Type: addonv1beta1.CustomSigner,
					CustomSigner: &addonv1beta1.CustomSignerConfig{
						SignerName: customSigner,
						Subject: addonv1beta1.Subject{
							BaseSubject:       addonv1beta1.BaseSubject{User: "u", Groups: []string{"g"}},
							OrganizationUnits: []string{"ou"},
						},
					},
				}},
			}},
		},
		"the deprecated name of a config reference goes when a newer field names the config": {
			in: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1alpha1.ConfigReference{{
					ConfigGroupResource:    addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"},
					ConfigReferent:         addonv1alpha1.ConfigReferent{Namespace: "old", Name: "old"},
					LastObservedGeneration: 7,
					DesiredConfig:          alphaHash("ns", "n", "h"),
				}},
			}},
			want: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1beta1.ConfigReference{{
					ConfigGroupResource:    addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"},
					LastObservedGeneration: 7,
					DesiredConfig:          betaHash("ns", "n", "h"),
				}},
			}},
		},
		"the deprecated name of a config reference counts when nothing newer names the config": {
			in: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1alpha1.ConfigReference{{
					ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"},
				}},
			}},
			want: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1beta1.ConfigReference{{DesiredConfig: betaHash("ns", "n", "")}},
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.TypeMeta = metav1.TypeMeta{
				APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn",
			}
			assert.Equal(t, &test.want, addonapi.AddOnToBeta(&test.in))
		})
	}
}

func TestAddOnToAlpha(t *testing.T) {
	tests := map[string]struct {
		in   addonv1beta1.ManagedClusterAddOn
		want addonv1alpha1.ManagedClusterAddOn
	}{
		"the annotation becomes the install namespace and goes, others stay": {
			in: addonv1beta1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k": "v", installKey: "ns"}},
			},
			want: addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k": "v"}},
				Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "ns"},
			},
		},
		"the driver is that of the first kube client that states one": {
			in: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				Registrations: []addonv1beta1.RegistrationConfig{
					kubeClient("a", ""), kubeClient("b", "csr", "g"), kubeClient("c", "token"),
				},
			}},
			want: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				KubeClientDriver: "csr",
				Registrations: []addonv1alpha1.RegistrationConfig{
					{SignerName: kubeSigner, Subject: addonv1alpha1.Subject{User: "a"}},
					{SignerName: kubeSigner, Subject: addonv1alpha1.Subject{User: "b", Groups: []string{"g"}}},
					{SignerName: kubeSigner, Subject: addonv1alpha1.Subject{User: "c"}},
				},
			}},
		},
		"registrations without content do not crash and one without a signer is left out": {
			in: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				Registrations: []addonv1beta1.RegistrationConfig{
					{Type: addonv1beta1.CustomSigner}, {Type: addonv1beta1.KubeClient},
				},
			}},
			want: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				Registrations: []addonv1alpha1.RegistrationConfig{{SignerName: kubeSigner}},
			}},
		},
		"a config reference gets the required name from the desired, else from the applied config": {
			in: addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1beta1.ConfigReference{
					{DesiredConfig: betaHash("ns", "n", "h"), LastAppliedConfig: betaHash("", "old", "o")},
					{LastAppliedConfig: betaHash("", "old", "o")},
					{LastObservedGeneration: 3},
				},
			}},
			want: addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{
				ConfigReferences: []addonv1alpha1.ConfigReference{
					{
						ConfigReferent:    addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"},
						DesiredConfig:     alphaHash("ns", "n", "h"),
						LastAppliedConfig: alphaHash("", "old", "o"),
					},
					{
						ConfigReferent:    addonv1alpha1.ConfigReferent{Name: "old"},
						LastAppliedConfig: alphaHash("", "old", "o"),
					},
				},
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.TypeMeta = metav1.TypeMeta{
				APIVersion: "addon.open-cluster-management.io/v1alpha1", Kind: "ManagedClusterAddOn",
			}
			assert.Equal(t, &test.want, addonapi.AddOnToAlpha(&test.in))
		})
	}
}

func TestManagementDefaults(t *testing.T) {
	alpha := &addonv1alpha1.ClusterManagementAddOn{Spec: addonv1alpha1.ClusterManagementAddOnSpec{
		AddOnConfiguration: addonv1alpha1.ConfigCoordinates{CRDName: "crd", CRName: "cr", LastObservedGeneration: 3},
		SupportedConfigs: []addonv1alpha1.ConfigMeta{
			{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "without"}},
			{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "with"},
				DefaultConfig:       &addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"},
			},
		},
	}}
	beta := addonapi.ClusterManagementAddOnToBeta(alpha)
	assert.Equal(t, "addon.open-cluster-management.io/v1beta1", beta.APIVersion)
	assert.Equal(t, "ClusterManagementAddOn", beta.Kind)
	assert.Equal(t, []addonv1beta1.AddOnConfig{
		{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "without"},
			ConfigReferent:      addonv1beta1.ConfigReferent{Name: "__reserved_no_default__"},
		},
		{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "with"},
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: "n"},
		},
	}, beta.Spec.DefaultConfigs)
	assert.False(t, addonapi.HasDefault(beta.Spec.DefaultConfigs[0]))
	assert.True(t, addonapi.HasDefault(beta.Spec.DefaultConfigs[1]))
	assert.JSONEq(t, `{"crdName":"crd","crName":"cr","lastObservedGeneration":3}`, beta.Annotations[addOnConfigKey])

	back := addonapi.ClusterManagementAddOnToAlpha(beta)
	assert.Equal(t, "addon.open-cluster-management.io/v1alpha1", back.APIVersion)
	assert.Equal(t, alpha.Spec, back.Spec)
	assert.Empty(t, back.Annotations)
}

func TestManagementToAlphaKeepsAnAnnotationThatItCannotRead(t *testing.T) {
	beta := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{addOnConfigKey: "not json"},
	}}
	alpha := addonapi.ClusterManagementAddOnToAlpha(beta)
	assert.Equal(t, beta.Annotations, alpha.Annotations)
	assert.Empty(t, alpha.Spec.AddOnConfiguration)
}

func TestConvertNil(t *testing.T) {
	assert.Nil(t, addonapi.AddOnToBeta(nil))
	assert.Nil(t, addonapi.AddOnToAlpha(nil))
	assert.Nil(t, addonapi.ClusterManagementAddOnToBeta(nil))
	assert.Nil(t, addonapi.ClusterManagementAddOnToAlpha(nil))
}

// FuzzAddOn checks on random objects what must hold for all: the input is neither changed nor shared, what both
// versions can say survives the way there and back, and a second trip changes nothing that the first did not.
func FuzzAddOn(f *testing.F) {
	for seed := range int64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		alpha := random[addonv1alpha1.ManagedClusterAddOn](seed)
		beta := trip(t, alpha, addonapi.AddOnToBeta)
		once := trip(t, beta, addonapi.AddOnToAlpha)
		same(t, once, addonapi.AddOnToAlpha(addonapi.AddOnToBeta(once)))

		sayableAlpha(alpha)
		same(t, alpha, addonapi.AddOnToAlpha(addonapi.AddOnToBeta(alpha)))

		other := random[addonv1beta1.ManagedClusterAddOn](seed)
		trip(t, other, addonapi.AddOnToAlpha)
		sayableBeta(other)
		same(t, other, addonapi.AddOnToBeta(addonapi.AddOnToAlpha(other)))
	})
}

// FuzzManagement is FuzzAddOn for ClusterManagementAddOn.
func FuzzManagement(f *testing.F) {
	for seed := range int64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		alpha := random[addonv1alpha1.ClusterManagementAddOn](seed)
		beta := trip(t, alpha, addonapi.ClusterManagementAddOnToBeta)
		once := trip(t, beta, addonapi.ClusterManagementAddOnToAlpha)
		same(t, once, addonapi.ClusterManagementAddOnToAlpha(addonapi.ClusterManagementAddOnToBeta(once)))

		alpha.TypeMeta = once.TypeMeta
		for i := range alpha.Spec.SupportedConfigs {
			if config := &alpha.Spec.SupportedConfigs[i]; config.DefaultConfig != nil {
				config.DefaultConfig.Name = "n" + config.DefaultConfig.Name
			}
		}
		same(t, alpha, addonapi.ClusterManagementAddOnToAlpha(addonapi.ClusterManagementAddOnToBeta(alpha)))

		other := random[addonv1beta1.ClusterManagementAddOn](seed)
		trip(t, other, addonapi.ClusterManagementAddOnToAlpha)
		other.TypeMeta = beta.TypeMeta
		for i := range other.Spec.DefaultConfigs {
			config := &other.Spec.DefaultConfigs[i]
			if config.Name == "" {
				config.ConfigReferent = addonv1beta1.ConfigReferent{Name: addonapi.ReservedNoDefault}
			}
		}
		same(t, other, addonapi.ClusterManagementAddOnToBeta(addonapi.ClusterManagementAddOnToAlpha(other)))
	})
}

// sayableAlpha makes an object to one that v1beta1 can say in full.
func sayableAlpha(in *addonv1alpha1.ManagedClusterAddOn) {
	in.TypeMeta = metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"}
	in.Status.AddOnConfiguration = addonv1alpha1.ConfigCoordinates{}
	kube := false
	for i := range in.Status.Registrations {
		r := &in.Status.Registrations[i]
		r.SignerName = customSigner
		if i%2 == 0 {
			kube, r.SignerName, r.Subject.OrganizationUnits = true, kubeSigner, nil
		}
	}
	if !kube {
		in.Status.KubeClientDriver = ""
	}
	for i := range in.Status.ConfigReferences {
		ref := &in.Status.ConfigReferences[i]
		if ref.DesiredConfig == nil {
			ref.DesiredConfig = &addonv1alpha1.ConfigSpecHash{}
		}
		ref.DesiredConfig.Name = "n" + ref.DesiredConfig.Name
		ref.ConfigReferent = ref.DesiredConfig.ConfigReferent
	}
}

// sayableBeta makes an object to one that v1alpha1 can say in full.
func sayableBeta(in *addonv1beta1.ManagedClusterAddOn) {
	in.TypeMeta = metav1.TypeMeta{APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn"}
	for i := range in.Status.Registrations {
		r := &in.Status.Registrations[i]
		if i%2 == 0 {
			*r = kubeClient("u", "csr", "g")
			continue
		}
		if r.CustomSigner == nil {
			r.CustomSigner = &addonv1beta1.CustomSignerConfig{}
		}
		r.Type, r.KubeClient, r.CustomSigner.SignerName = addonv1beta1.CustomSigner, nil, customSigner
	}
	for i := range in.Status.ConfigReferences {
		ref := &in.Status.ConfigReferences[i]
		if ref.DesiredConfig == nil {
			ref.DesiredConfig = &addonv1beta1.ConfigSpecHash{}
		}
		ref.DesiredConfig.Name = "n" + ref.DesiredConfig.Name
	}
}

// trip converts and checks that the input stays as it was and shares nothing with the result.
func trip[A, B any, P interface {
	*A
	DeepCopy() *A
}](t *testing.T, in P, convert func(*A) *B) *B {
	t.Helper()
	before := in.DeepCopy()
	out := convert(in)
	require.Equal(t, before, in.DeepCopy(), "the input was changed")
	require.Empty(t, shared(in, out), "the result shares memory with the input")
	return out
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		require.Equal(t, want, got)
	}
}

func kubeClient(user, driver string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{
			Driver: driver,
			Subject: addonv1beta1.KubeClientSubject{
				BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups},
			},
		},
	}
}

func alphaHash(namespace, name, hash string) *addonv1alpha1.ConfigSpecHash {
	return &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: namespace, Name: name}, SpecHash: hash,
	}
}

func betaHash(namespace, name, hash string) *addonv1beta1.ConfigSpecHash {
	return &addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name}, SpecHash: hash,
	}
}
