package coexistence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// defined creates the ClusterManagementAddOn on the API server without a hub manager, and the add-on on a new cluster,
// as OCM's hub manager does. The ClusterManagementAddOn goes with the test.
func defined(t *testing.T, annotations map[string]string, configs ...addonv1beta1.AddOnConfig) fixture {
	t.Helper()
	cma := &addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: weather, Annotations: annotations},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{
			DefaultConfigs:  configs,
			InstallStrategy: addonv1beta1.InstallStrategy{Type: addonv1beta1.AddonInstallStrategyManual},
		},
	}
	alpha := bare.AddOns.WatchedClusterManagementAddOn()
	t.Cleanup(func() {
		alpha.SetName(weather)
		assert.NoError(t, client.IgnoreNotFound(bare.Client.Delete(context.WithoutCancel(t.Context()), alpha)))
	})
	require.NoError(t, bare.Client.Create(t.Context(), addonapi.ClusterManagementAddOnToAlpha(cma)))
	f := join(t, bare, "ocm", nil)
	found, err := bare.AddOns.GetClusterManagementAddOn(t.Context(), weather)
	require.NoError(t, err)
	require.NoError(t, bare.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: weather, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ClusterManagementAddOn", Name: weather, UID: found.UID,
		}}},
	}))
	return f
}

// hash waits until the program has reported the hash of the default configuration, other than one that was, and returns
// it. OCM's hub manager enters the reference without a hash.
func hash(t *testing.T, config addonv1beta1.AddOnConfig, was string) string {
	t.Helper()
	var hash string
	suite.Eventually(t, func() error {
		cma, err := bare.AddOns.GetClusterManagementAddOn(t.Context(), weather)
		if err != nil {
			return err
		}
		if len(cma.Status.DefaultConfigReferences) == 0 {
			after := cma.DeepCopy()
			after.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
				ConfigGroupResource: config.ConfigGroupResource,
				DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent},
			}}
			_, err := bare.AddOns.PatchClusterManagementAddOnStatus(t.Context(), cma, after)
			return errors.Join(err, errors.New("there is no reference yet"))
		}
		hash = cma.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash
		if hash == was {
			return fmt.Errorf("the hash is still %q", was)
		}
		return nil
	})
	return hash
}

// Shows: hub/author-program-ocm
func TestAProgramBesideOCM(t *testing.T) {
	configure(t, bare, "cities", "Lima")
	config := deploymentConfig("cities")
	f := defined(t, nil, config)
	t.Run("nothing is deployed before the hub manager has configured the add-on", func(t *testing.T) {
		suite.Consistently(t, 2*time.Second, func() error {
			if _, _, err := f.deployed(); !apierrors.IsNotFound(err) {
				return fmt.Errorf("there is a work: %w", err)
			}
			return nil
		})
	})

	first := hash(t, config, "")
	f.write(func(status *addonv1beta1.ManagedClusterAddOnStatus) {
		status.ConfigReferences = []addonv1beta1.ConfigReference{desires(config, first)}
		configured(status)
	})
	work := f.deploys("Lima")
	assert.JSONEq(t, `{"addondeploymentconfigs.addon.open-cluster-management.io/`+home+`/cities":"`+first+`"}`,
		work.Annotations[names.AnnotationConfigSpecHash])
	f.reports()
	f.says(addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue)

	t.Run("an edit in place waits for the hub manager", func(t *testing.T) {
		configure(t, bare, "cities", "Cusco")
		second := hash(t, config, first)
		suite.Consistently(t, time.Second, func() error {
			data, _, err := f.deployed()
			if err == nil && data["city"] != "Lima" {
				err = fmt.Errorf("it has city %q already", data["city"])
			}
			return err
		})
		f.write(func(status *addonv1beta1.ManagedClusterAddOnStatus) {
			status.ConfigReferences = []addonv1beta1.ConfigReference{desires(config, second)}
		})
		f.deploys("Cusco")
	})

	t.Run("a reference that no spec names is not read, whoever wrote it", func(t *testing.T) {
		configure(t, bare, "secret", "Quito")
		secret := deploymentConfig("secret")
		other := hashOf(t, "secret")
		f.write(func(status *addonv1beta1.ManagedClusterAddOnStatus) {
			status.ConfigReferences = []addonv1beta1.ConfigReference{desires(secret, other)}
		})
		suite.Consistently(t, 2*time.Second, func() error {
			data, _, err := f.deployed()
			if err == nil && data["city"] != "Cusco" {
				err = fmt.Errorf("it has city %q", data["city"])
			}
			return err
		})
	})

	t.Run("the hash of a configuration of one cluster is reported on the add-on", func(t *testing.T) {
		configure(t, bare, "own", "Piura")
		own := deploymentConfig("own")
		before, err := f.addOn()
		require.NoError(t, err)
		after := before.DeepCopy()
		after.Spec.Configs = []addonv1beta1.AddOnConfig{own}
		_, err = bare.AddOns.PatchAddOn(t.Context(), before, after)
		require.NoError(t, err)
		f.write(func(status *addonv1beta1.ManagedClusterAddOnStatus) {
			status.ConfigReferences = []addonv1beta1.ConfigReference{desires(own, "")}
		})
		f.deploys("Piura")
		addOn, err := f.addOn()
		require.NoError(t, err)
		assert.Equal(t, hashOf(t, "own"), addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash)
		assert.Positive(t, addOn.Status.ConfigReferences[0].LastObservedGeneration)
	})
	assert.Empty(t, refused(t, bare))
}

// An add-on that manages itself is configured by nobody.
//
// Shows: hub/author-program-self
func TestAProgramWhoseAddOnManagesItself(t *testing.T) {
	f := defined(t, map[string]string{names.AnnotationLifecycle: "self"})
	f.deploys("<nil>")
}

// hashOf returns the hash of an AddOnDeploymentConfig.
func hashOf(t *testing.T, name string) string {
	t.Helper()
	object, _ := confighash.New(confighash.DeploymentConfig())
	require.NoError(t, bare.Client.Get(t.Context(), types.NamespacedName{Namespace: home, Name: name}, object))
	hash, err := confighash.SpecHash(object)
	require.NoError(t, err)
	return hash
}
