package deploy_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/hosted.yaml
var hostedFile []byte

const (
	hostingAnnotation   = "addon.open-cluster-management.io/hosting-cluster-name"
	objectsFinalizer    = "addon.open-cluster-management.io/hosting-manifests-cleanup"
	hookFinalizer       = "addon.open-cluster-management.io/addon-pre-delete"
	hostedHookFinalizer = "addon.open-cluster-management.io/hosting-addon-pre-delete"

	// deployed and hosted are all objects of testdata/hosted.yaml by side in hosted mode.
	deployed, hosted = "ConfigMap/access", "Deployment/agent,ServiceAccount/agent"
	// inDefaultMode are its objects without hosting cluster.
	inDefaultMode = "Deployment/agent,ServiceAccount/agent,ConfigMap/access,ConfigMap/alone"
)

// host creates a cluster that can host, and its namespace.
func host(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{names.LabelClusterName: name},
	}}))
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
}

// installHosted enables the add-on of testdata/hosted.yaml on a new cluster. on names the hosting cluster; empty for
// none. hooks are the manifests of hooks.
func installHosted(t *testing.T, addOn, on string, hooks ...string) fixture {
	t.Helper()
	f := fixture{addOn: addOn, cluster: addOn + "-cluster"}
	f.prepare(t)
	f.applyHosted(t, hooks...)
	f.enable(t, func(a *addonv1beta1.ManagedClusterAddOn) {
		if on != "" {
			a.Annotations = map[string]string{hostingAnnotation: on}
		}
	})
	return f
}

// applyHosted creates or updates the objects of the file.
func (f fixture) applyHosted(t *testing.T, hooks ...string) {
	t.Helper()
	raw := bytes.ReplaceAll(hostedFile, []byte("# HOOKS"), []byte(strings.Join(hooks, "\n        ")))
	require.NoError(t, plane.Apply(t.Context(), bytes.ReplaceAll(raw, []byte("ADDON"), []byte(f.addOn))))
}

// managedKey and hostedKey are the keys of the first works of an add-on.
func (f fixture) managedKey() client.ObjectKey { return f.workKey() }

func (f fixture) hostedKey(host string) client.ObjectKey {
	return client.ObjectKey{Namespace: host, Name: "addon-" + f.addOn + "-deploy-hosting-" + f.cluster + "-0"}
}

// content returns the objects in a work in their order; false when there is no such work.
func content(ctx context.Context, key client.ObjectKey) (string, bool) {
	var work workv1.ManifestWork
	if err := plane.Client.Get(ctx, key, &work); err != nil || work.DeletionTimestamp != nil {
		return "", false
	}
	var all []string
	for i := range work.Spec.Workload.Manifests {
		var u metav1.PartialObjectMetadata
		if err := json.Unmarshal(work.Spec.Workload.Manifests[i].Raw, &u); err != nil {
			return err.Error(), true
		}
		all = append(all, u.Kind+"/"+u.Name)
	}
	return strings.Join(all, ","), true
}

// holds waits until a work has exactly these objects; none means that there is no such work.
func holds(t *testing.T, key client.ObjectKey, want string) {
	t.Helper()
	suite.Eventually(t, func() error {
		have, found := content(t.Context(), key)
		if have != want || found != (want != "") {
			return fmt.Errorf("work %s has %q instead of %q", key, have, want)
		}
		return nil
	})
}

// finalizers waits until the add-on has exactly these finalizers.
func (f fixture) finalizers(t *testing.T, want ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		addOn := f.get(t.Context())
		if addOn == nil || !slices.Equal(slices.Sorted(slices.Values(addOn.Finalizers)), slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("the finalizers are not %v: %v", want, addOn)
		}
		return nil
	})
}

// without waits until the add-on lacks conditions.
func (f fixture) without(t *testing.T, kinds ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		addOn := f.get(t.Context())
		for _, kind := range kinds {
			if addOn == nil || meta.FindStatusCondition(addOn.Status.Conditions, kind) != nil {
				return fmt.Errorf("condition %s is still there: %v", kind, addOn)
			}
		}
		return nil
	})
}

// reports writes the status of a work as its agent would: everything applied and available, and values of one object by
// name.
func reports(t *testing.T, key client.ObjectKey, about workv1.ManifestResourceMeta, values map[string]any) {
	t.Helper()
	suite.Eventually(t, func() error {
		var work workv1.ManifestWork
		if err := plane.Client.Get(t.Context(), key, &work); err != nil {
			return err
		}
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "ByAgent", ObservedGeneration: work.Generation,
			})
		}
		m := workv1.ManifestCondition{ResourceMeta: about, Conditions: []metav1.Condition{}}
		for name, value := range values {
			switch value := value.(type) {
			case string:
				m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
					Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value},
				})
			case int64:
				m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
					Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
				})
			}
		}
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{m}
		return plane.Client.Status().Update(t.Context(), &work)
	})
}

func deployment(f fixture) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{
		Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: f.addOn + "-agents", Name: "agent",
	}
}

// Shows: hub/hosted-works, hub/hosted-conditions
func TestAHostedTemplate(t *testing.T) {
	t.Parallel()
	host(t, "hosted-host")
	f := installHosted(t, "hosted", "hosted-host")
	holds(t, f.managedKey(), deployed)
	holds(t, f.hostedKey("hosted-host"), hosted)
	f.finalizers(t, objectsFinalizer)
	f.condition(t, "HostingClusterValidity", metav1.ConditionTrue, "HostingClusterValid")

	var work workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), f.hostedKey("hosted-host"), &work))
	assert.Empty(t, work.OwnerReferences)
	assert.Equal(t, map[string]string{
		"open-cluster-management.io/addon-name": "hosted", "open-cluster-management.io/addon-namespace": f.cluster,
	}, work.Labels)
	require.NotNil(t, work.Spec.DeleteOption, "what outlives the add-on does so on the hosting cluster as well")

	reports(t, f.managedKey(), deployment(f), nil)
	f.condition(t, "ManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	f.without(t, "HostingManifestApplied")
	reports(t, f.hostedKey("hosted-host"), deployment(f), map[string]any{"ReadyReplicas": int64(0), "Replicas": int64(1)})
	f.condition(t, "HostingManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	f.condition(t, "Available", metav1.ConditionFalse, "ProbeUnavailable")
	reports(t, f.hostedKey("hosted-host"), deployment(f), map[string]any{"ReadyReplicas": int64(1), "Replicas": int64(1)})
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")

	f.atRest(t)
	require.NoError(t, plane.Client.Get(t.Context(), f.hostedKey("hosted-host"), &work))
	f.annotate(t, "touched", "yes")
	f.atRest(t)
	var again workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), f.hostedKey("hosted-host"), &again))
	assert.Equal(t, work.ResourceVersion, again.ResourceVersion, "a pass that finds everything in order writes nothing")

	require.NoError(t, plane.Client.Delete(t.Context(), &again))
	suite.Eventually(t, suite.True("a work that somebody deletes must come again", func() bool {
		var remade workv1.ManifestWork
		return plane.Client.Get(t.Context(), f.hostedKey("hosted-host"), &remade) == nil && remade.UID != again.UID
	}))

	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), f.get(t.Context())))
	holds(t, f.hostedKey("hosted-host"), "")
	suite.Eventually(t, suite.True("the add-on must go", func() bool { return f.get(t.Context()) == nil }))
}

// Shows: hub/mode-switch
func TestObjectsMoveWithTheMode(t *testing.T) {
	t.Parallel()
	host(t, "moving-host")
	f := installHosted(t, "moving", "")
	holds(t, f.managedKey(), inDefaultMode)
	f.finalizers(t)
	f.without(t, "HostingManifestApplied", "HostingClusterValidity")

	f.annotate(t, hostingAnnotation, "moving-host")
	holds(t, f.managedKey(), deployed)
	holds(t, f.hostedKey("moving-host"), hosted)
	f.finalizers(t, objectsFinalizer)
	reports(t, f.hostedKey("moving-host"), deployment(f), nil)
	f.condition(t, "HostingManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	var work workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), f.managedKey(), &work))
	assert.Len(t, work.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules, 1,
		"an object that is to outlive the add-on stays where it was")

	// An empty value is default mode.
	f.annotate(t, hostingAnnotation, "")
	holds(t, f.managedKey(), inDefaultMode)
	holds(t, f.hostedKey("moving-host"), "")
	f.finalizers(t)
	f.without(t, "HostingManifestApplied", "HostingClusterValidity")
	f.atRest(t)
}

// Shows: hub/hosting-cluster-changes
func TestTheHostingClusterChanges(t *testing.T) {
	t.Parallel()
	host(t, "changing-one")
	host(t, "changing-two")
	f := installHosted(t, "changing", "changing-one")
	holds(t, f.hostedKey("changing-one"), hosted)

	f.annotate(t, hostingAnnotation, "changing-two")
	holds(t, f.hostedKey("changing-two"), hosted)
	holds(t, f.hostedKey("changing-one"), "")
	f.finalizers(t, objectsFinalizer)

	two := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "changing-two"}}
	accept := func(accepted bool) {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%v}}`, accepted))
		require.NoError(t, plane.Client.Patch(t.Context(), two, patch))
	}
	accept(false)
	f.condition(t, "HostingClusterValidity", metav1.ConditionFalse, "HostingClusterInvalid")
	f.annotate(t, "touched", "yes")
	f.atRest(t)
	holds(t, f.hostedKey("changing-two"), hosted)
	f.finalizers(t, objectsFinalizer)
	accept(true)
	f.condition(t, "HostingClusterValidity", metav1.ConditionTrue, "HostingClusterValid")

	require.NoError(t, plane.Client.Delete(t.Context(), two))
	message := f.condition(t, "HostingClusterValidity", metav1.ConditionFalse, "HostingClusterInvalid").Message
	assert.Contains(t, message, `There is no ManagedCluster "changing-two"`)
	holds(t, f.hostedKey("changing-two"), "")
	f.finalizers(t)
	holds(t, f.managedKey(), deployed)

	f.annotate(t, hostingAnnotation, "changing-one")
	holds(t, f.hostedKey("changing-one"), hosted)
}

// Shows: hub/hosting-cluster-is-the-managed-one
func TestTheManagedClusterHostsItself(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "itself", "")
	holds(t, f.managedKey(), inDefaultMode)

	f.annotate(t, hostingAnnotation, f.cluster)
	holds(t, f.hostedKey(f.cluster), hosted)
	f.atRest(t)
	holds(t, f.managedKey(), "Deployment/agent,ServiceAccount/agent,"+deployed)
	reports(t, f.hostedKey(f.cluster), deployment(f), nil)
	holds(t, f.managedKey(), deployed)
	f.atRest(t)
	holds(t, f.hostedKey(f.cluster), hosted)

	f.annotate(t, hostingAnnotation, "")
	holds(t, f.managedKey(), inDefaultMode)
	f.atRest(t)
	holds(t, f.hostedKey(f.cluster), hosted)
	reports(t, f.managedKey(), deployment(f), nil)
	holds(t, f.hostedKey(f.cluster), "")
	f.finalizers(t)
	holds(t, f.managedKey(), inDefaultMode)
	f.atRest(t)
}

// Shows: hub/taken-over
func TestAHostedAddOnOfAnotherManagerIsTakenOver(t *testing.T) {
	t.Parallel()
	host(t, "taken-host")
	f := fixture{addOn: "taken", cluster: "taken-cluster"}
	f.prepare(t)
	f.applyHosted(t)
	theirs := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "taken-host", Name: f.hostedKey("").Name, Labels: map[string]string{
				"open-cluster-management.io/addon-name": "taken", "open-cluster-management.io/addon-namespace": f.cluster,
			},
		},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{
			RawExtension: rawConfigMap("old"),
		}}}},
	}
	require.NoError(t, plane.Client.Create(t.Context(), theirs))
	f.enable(t, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Annotations = map[string]string{hostingAnnotation: "taken-host"}
		a.Finalizers = []string{
			"cluster.open-cluster-management.io/hosting-manifests-cleanup", "cluster.open-cluster-management.io/addon-pre-delete",
		}
	})
	holds(t, f.hostedKey("taken-host"), hosted)
	var work workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), f.hostedKey("taken-host"), &work))
	assert.Equal(t, theirs.UID, work.UID, "the work is adopted by its name")
	f.finalizers(t, objectsFinalizer)
}

func rawConfigMap(name string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}`, name)}
}

// goneWithin waits until the add-on is gone.
func (f fixture) goneWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	suite.Within(t, limit, func() error {
		addOn, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: f.cluster, Name: f.addOn})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the add-on is still there: %w, %v", err, addOn)
	})
}
