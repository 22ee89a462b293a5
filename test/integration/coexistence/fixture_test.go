package coexistence_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// fixture is the add-on on one cluster.
type fixture struct {
	*testing.T
	plane   *suite.Plane
	cluster string
}

// join creates a cluster that is accepted, with its namespace.
func join(t *testing.T, p *suite.Plane, prefix string, labels map[string]string) fixture {
	t.Helper()
	f := fixture{T: t, plane: p, cluster: suite.UniqueName(prefix)}
	require.NoError(t, p.Client.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: f.cluster, Labels: labels},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	if p == bare {
		require.NoError(t, p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: f.cluster, Labels: map[string]string{names.LabelClusterName: f.cluster},
		}}))
	}
	return f
}

// addOn reads the add-on.
func (f fixture) addOn() (*addonv1beta1.ManagedClusterAddOn, error) {
	return f.plane.AddOns.GetAddOn(f.Context(), types.NamespacedName{Namespace: f.cluster, Name: weather})
}

// says waits until a condition of the add-on has a status and its message all the texts.
func (f fixture) says(kind string, status metav1.ConditionStatus, texts ...string) {
	f.Helper()
	suite.Eventually(f, func() error {
		addOn, err := f.addOn()
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if found == nil || found.Status != status {
			return fmt.Errorf("%s is not %s: %+v", kind, status, addOn.Status.Conditions)
		}
		for _, text := range texts {
			if !strings.Contains(found.Message, text) {
				return fmt.Errorf("%s does not say %q: %s", kind, text, found.Message)
			}
		}
		return nil
	})
}

// deployed returns the data of the object that the work of the add-on has, and the work.
func (f fixture) deployed() (map[string]string, *workv1.ManifestWork, error) {
	var work workv1.ManifestWork
	key := client.ObjectKey{Namespace: f.cluster, Name: "addon-" + weather + "-deploy-0"}
	if err := f.plane.Client.Get(f.Context(), key, &work); err != nil {
		return nil, nil, err
	}
	var object corev1.ConfigMap
	err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &object)
	return object.Data, &work, err
}

// deploys waits until the work of the add-on has a city.
func (f fixture) deploys(city string) *workv1.ManifestWork {
	f.Helper()
	var work *workv1.ManifestWork
	suite.Eventually(f, func() error {
		data, found, err := f.deployed()
		if err == nil && data["city"] != city {
			err = fmt.Errorf("%s has city %q instead of %q", f.cluster, data["city"], city)
		}
		if err != nil {
			if addOn, failed := f.addOn(); failed == nil {
				err = fmt.Errorf("%w; the add-on has %+v", err, addOn.Status)
			}
		}
		work = found
		return err
	})
	return work
}

// reports writes the status of the present work as the agent of the cluster does.
func (f fixture) reports() {
	f.Helper()
	suite.Eventually(f, func() error {
		_, work, err := f.deployed()
		if err != nil {
			return err
		}
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Played", ObservedGeneration: work.Generation,
			})
		}
		return f.plane.Client.Status().Update(f.Context(), work)
	})
}

// configure creates or changes an AddOnDeploymentConfig with a city.
func configure(t *testing.T, p *suite.Plane, name, city string) {
	t.Helper()
	require.NoError(t, p.Apply(t.Context(), []byte(fmt.Sprintf(`apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: %s, namespace: %s}
spec: {customizedVariables: [{name: CITY, value: %s}]}
`, name, home, city))))
}

// write changes the status of the add-on as another writer does.
func (f fixture) write(change func(*addonv1beta1.ManagedClusterAddOnStatus)) {
	f.Helper()
	suite.Eventually(f, func() error {
		before, err := f.addOn()
		if err != nil {
			return err
		}
		after := before.DeepCopy()
		change(&after.Status)
		_, err = f.plane.AddOns.PatchAddOnStatus(f.Context(), before, after)
		return err
	})
}

// configured is the condition with which a hub manager reports that it has entered the configuration.
func configured(status *addonv1beta1.ManagedClusterAddOnStatus) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnConditionConfigured, Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
	})
}

// deploymentConfig refers to an AddOnDeploymentConfig.
func deploymentConfig(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: home, Name: name},
	}
}

// desires returns the reference to a configuration with a hash.
func desires(config addonv1beta1.AddOnConfig, hash string) addonv1beta1.ConfigReference {
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: config.ConfigGroupResource,
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent, SpecHash: hash},
	}
}

var errStill = errors.New("it is still there")
