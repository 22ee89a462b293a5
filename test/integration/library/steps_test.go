package library_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// available is the condition with the health of an add-on.
const available = addonv1beta1.ManagedClusterAddOnConditionAvailable

// join makes a cluster that is available.
func join(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	require.NoError(t, plane.Client.Create(t.Context(), cluster))
	suite.Eventually(t, func() error {
		return plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
	})
	suite.Eventually(t, func() error {
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "Played",
		})
		return plane.Client.Status().Update(t.Context(), cluster)
	})
}

// installed is an add-on on a cluster.
type installed struct {
	*testing.T
	cluster, addOn string
}

// install enables an add-on with values on a cluster.
func install(t *testing.T, cluster, addOn string, values map[string]any) installed {
	t.Helper()
	i := installed{t, cluster, addOn}
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn}}
	management.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), management)))
	enabled := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: addOn, Annotations: map[string]string{names.AnnotationValues: encoded(t, values)},
	}}
	require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), enabled))
	return i
}

func encoded(t *testing.T, values any) string {
	t.Helper()
	text, err := json.Marshal(values)
	require.NoError(t, err)
	return string(text)
}

// set replaces the values; a text stands for itself.
func (i installed) set(values any) {
	i.Helper()
	text, isText := values.(string)
	if !isText {
		text = encoded(i.T, values)
	}
	i.annotate(names.AnnotationValues, text)
}

func (i installed) annotate(key, value string) {
	i.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: i.cluster, Name: i.addOn}}
	require.NoError(i, plane.Client.Patch(i.Context(), addOn, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// has waits until a condition has a status, a reason unless it is empty, and a message with all texts.
func (i installed) has(kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	i.Helper()
	suite.Eventually(i, func() error {
		addOn, err := plane.AddOns.GetAddOn(i.Context(), types.NamespacedName{Namespace: i.cluster, Name: i.addOn})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if c == nil || c.Status != status || (reason != "" && c.Reason != reason) {
			return fmt.Errorf("%s of %s on %s is not %s, %s: %v", kind, i.addOn, i.cluster, status, reason, c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("%s of %s on %s does not tell %q: %s", kind, i.addOn, i.cluster, text, c.Message)
			}
		}
		return nil
	})
}

// mode waits until the health of the add-on is looked after in a mode.
func (i installed) mode(want addonv1beta1.HealthCheckMode) {
	i.Helper()
	suite.Eventually(i, func() error {
		addOn, err := plane.AddOns.GetAddOn(i.Context(), types.NamespacedName{Namespace: i.cluster, Name: i.addOn})
		if err == nil && addOn.Status.HealthCheck.Mode != want {
			err = fmt.Errorf("the mode of %s is %q instead of %q", i.addOn, addOn.Status.HealthCheck.Mode, want)
		}
		return err
	})
}

// work reads the only work of the add-on.
func (i installed) work() (*workv1.ManifestWork, error) {
	var work workv1.ManifestWork
	key := client.ObjectKey{Namespace: i.cluster, Name: "addon-" + i.addOn + "-deploy-0"}
	err := plane.Client.Get(i.Context(), key, &work)
	return &work, err
}

// deploys waits until the work has a text in it, and returns it.
func (i installed) deploys(text string) *workv1.ManifestWork {
	i.Helper()
	var work *workv1.ManifestWork
	suite.Eventually(i, func() error {
		var err error
		if work, err = i.work(); err != nil {
			return err
		}
		if raw := encoded(i.T, work.Spec); !strings.Contains(raw, text) {
			return fmt.Errorf("the work of %s on %s has no %q: %s", i.addOn, i.cluster, text, raw)
		}
		return nil
	})
	return work
}

// feed holds what a cluster feeds back about its objects.
type feed struct {
	phase       string
	main, extra int64
	node        int64
}

// report writes the status of the work as an agent that has applied it would; it feeds back only what the work asks
// for.
func (i installed) report(f feed) {
	i.Helper()
	integer := func(name string, value int64) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value}}
	}
	values := map[string][]workv1.FeedbackValue{
		"main":  {integer("Replicas", 1), integer("ReadyReplicas", f.main)},
		"extra": {integer("Replicas", 1), integer("ReadyReplicas", f.extra)},
		"node":  {integer("DesiredNumberScheduled", 1), integer("NumberReady", f.node)},
		"state": {{Name: "phase", Value: workv1.FieldValue{Type: workv1.String, String: &f.phase}}},
	}
	resources := map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments", "DaemonSet": "daemonsets"}
	suite.Eventually(i, func() error {
		work, err := i.work()
		if err != nil {
			return err
		}
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Played", ObservedGeneration: work.Generation,
			})
		}
		asked := map[string]bool{}
		for _, option := range work.Spec.ManifestConfigs {
			asked[option.ResourceIdentifier.Name] = len(option.FeedbackRules) > 0
		}
		work.Status.ResourceStatus.Manifests = nil
		for _, manifest := range work.Spec.Workload.Manifests {
			u := &unstructured.Unstructured{}
			require.NoError(i, json.Unmarshal(manifest.Raw, &u.Object))
			condition := workv1.ManifestCondition{Conditions: []metav1.Condition{}, ResourceMeta: workv1.ManifestResourceMeta{
				Group: u.GroupVersionKind().Group, Version: "v1", Kind: u.GetKind(), Resource: resources[u.GetKind()],
				Namespace: u.GetNamespace(), Name: u.GetName(),
			}}
			if asked[u.GetName()] {
				condition.StatusFeedbacks.Values = values[u.GetName()]
			}
			work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, condition)
		}
		return plane.Client.Status().Update(i.Context(), work)
	})
}

// lacks requires that nobody wrote a condition.
func (i installed) lacks(kind string) {
	i.Helper()
	addOn, err := plane.AddOns.GetAddOn(i.Context(), types.NamespacedName{Namespace: i.cluster, Name: i.addOn})
	require.NoError(i, err)
	require.Nil(i, meta.FindStatusCondition(addOn.Status.Conditions, kind))
}
