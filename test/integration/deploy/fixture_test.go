package deploy_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

//go:embed testdata/addon.yaml
var addOnFile []byte

const (
	// collection is how long a test waits for the garbage collector of Kubernetes, which looks for new kinds of objects
	// only every half minute.
	collection = 2 * time.Minute
)

// fixture is one add-on on one cluster, with names of its own.
type fixture struct {
	addOn, cluster string
}

// install creates what the add-on needs and enables it on a new cluster. Of the file, parts may be replaced, in pairs
// of what stands there and what is to.
func install(t *testing.T, addOn string, replacements ...string) fixture {
	t.Helper()
	f := fixture{addOn: addOn, cluster: addOn + "-cluster"}
	f.prepare(t)
	f.apply(t, replacements...)
	f.enable(t)
	return f
}

// prepare creates the cluster and the namespaces.
func (f fixture) prepare(t *testing.T) {
	t.Helper()
	for _, namespace := range []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: f.cluster, Labels: map[string]string{names.LabelClusterName: f.cluster}}},
		{ObjectMeta: metav1.ObjectMeta{Name: f.addOn + "-shared"}},
	} {
		require.NoError(t, plane.Client.Create(t.Context(), namespace))
	}
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: f.cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
}

// apply creates or updates the objects of the file, in which ADDON stands for the name of the add-on.
func (f fixture) apply(t *testing.T, replacements ...string) {
	t.Helper()
	raw := bytes.ReplaceAll(addOnFile, []byte("ADDON"), []byte(f.addOn))
	for i := 0; i+1 < len(replacements); i += 2 {
		require.Contains(t, string(raw), replacements[i])
		raw = bytes.ReplaceAll(raw, []byte(replacements[i]), []byte(replacements[i+1]))
	}
	require.NoError(t, plane.Apply(t.Context(), raw))
}

// enable creates the ManagedClusterAddOn, owned by its ClusterManagementAddOn as the hub's installer has it.
func (f fixture) enable(t *testing.T, changes ...func(*addonv1beta1.ManagedClusterAddOn)) {
	t.Helper()
	management, err := plane.AddOns.GetClusterManagementAddOn(t.Context(), f.addOn)
	require.NoError(t, err)
	addOn := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.cluster, Name: f.addOn, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: f.addOn,
				UID: management.UID, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
	}
	for _, change := range changes {
		change(addOn)
	}
	require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), addOn))
}

// get reads the add-on; nil when it is gone.
func (f fixture) get(ctx context.Context) *addonv1beta1.ManagedClusterAddOn {
	addOn, err := plane.AddOns.GetAddOn(ctx, types.NamespacedName{Namespace: f.cluster, Name: f.addOn})
	if err != nil {
		return nil
	}
	return addOn
}

// condition waits until a condition of the add-on has a status and a reason, and returns it.
func (f fixture) condition(
	t *testing.T, kind string, status metav1.ConditionStatus, reason string,
) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	suite.Eventually(t, func() error {
		addOn := f.get(t.Context())
		if addOn == nil {
			return errors.New("there is no add-on")
		}
		found = meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if found == nil || found.Status != status || found.Reason != reason {
			return fmt.Errorf("%s of %s is not %s/%s but %v", kind, f.addOn, status, reason, found)
		}
		return nil
	})
	return found
}

// says waits until a condition is as it should be and its message has the parts. Until the API server knows a role that
// was just made, a message can say that.
func (f fixture) says(t *testing.T, kind string, status metav1.ConditionStatus, reason string, parts ...string) string {
	t.Helper()
	var message string
	suite.Eventually(t, func() error {
		message = f.condition(t, kind, status, reason).Message
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return fmt.Errorf("%s does not say %q: %s", kind, part, message)
			}
		}
		return nil
	})
	return message
}

// work waits for the first work of the add-on and returns it.
func (f fixture) work(t *testing.T, check func(*workv1.ManifestWork) bool) *workv1.ManifestWork {
	t.Helper()
	var work workv1.ManifestWork
	suite.Eventually(t, suite.True("the work must be as it should", func() bool {
		work = workv1.ManifestWork{}
		err := plane.Client.Get(t.Context(), f.workKey(), &work)
		return err == nil && (check == nil || check(&work))
	}))
	return &work
}

func (f fixture) workKey() client.ObjectKey {
	return client.ObjectKey{Namespace: f.cluster, Name: "addon-" + f.addOn + "-deploy-0"}
}

// report writes the status of the first work as an agent that has applied it would.
func (f fixture) report(t *testing.T, readyReplicas int64) {
	t.Helper()
	suite.Eventually(t, suite.True("the status of the work must be written", func() bool {
		var work workv1.ManifestWork
		if err := plane.Client.Get(t.Context(), f.workKey(), &work); err != nil {
			return false
		}
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: work.Generation,
			})
		}
		work.Status.ResourceStatus.Manifests = nil
		for i := range work.Spec.Workload.Manifests {
			o := decode(t, &work.Spec.Workload.Manifests[i])
			if o.GetKind() != "Deployment" {
				continue
			}
			work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
				ResourceMeta: workv1.ManifestResourceMeta{
					Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
					Namespace: o.GetNamespace(), Name: o.GetName(),
				},
				Conditions: []metav1.Condition{},
				StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
					{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &readyReplicas}},
					{Name: "Replicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: new(int64(1))}},
				}},
			})
		}
		return plane.Client.Status().Update(t.Context(), &work) == nil
	}))
}

// atRest waits until nothing about the add-on changes any more.
func (f fixture) atRest(t *testing.T) {
	t.Helper()
	versions := func() string {
		addOn, text := f.get(t.Context()), ""
		if addOn != nil {
			text = addOn.ResourceVersion
		}
		var works workv1.ManifestWorkList
		assert.NoError(t, plane.Client.List(t.Context(), &works, client.InNamespace(f.cluster)))
		for i := range works.Items {
			text += "," + works.Items[i].ResourceVersion
		}
		return text
	}
	suite.Quiet(t, 500*time.Millisecond, versions)
}

// writes returns what the hub manager has sent about the cluster of the add-on, reads aside, in order.
func (f fixture) writes(t *testing.T) []string {
	t.Helper()
	log, err := os.ReadFile(plane.AuditLog())
	require.NoError(t, err)
	var all []string
	for line := range bytes.Lines(log) {
		var event struct {
			Stage, Verb, RequestURI string
			User                    struct{ Username string }
		}
		if json.Unmarshal(line, &event) != nil || event.Stage != "ResponseComplete" {
			continue
		}
		reads := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
		if !reads && strings.Contains(event.RequestURI, "/namespaces/"+f.cluster+"/") &&
			strings.HasSuffix(event.User.Username, ":spokelet-hub") {
			all = append(all, event.Verb+" "+event.RequestURI)
		}
	}
	return all
}

// binding reads a RoleBinding; nil when it is not there.
func binding(ctx context.Context, namespace, name string) *rbacv1.RoleBinding {
	var b rbacv1.RoleBinding
	if err := plane.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &b); err != nil {
		return nil
	}
	return &b
}

// decode decodes a manifest of a work.
func decode(t *testing.T, m *workv1.Manifest) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(m.Raw, &u.Object))
	return u
}

// argument returns an argument of the first container of the first manifest.
func argument(t *testing.T, work *workv1.ManifestWork, index int) string {
	t.Helper()
	u := decode(t, &work.Spec.Workload.Manifests[0])
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	container, ok := containers[0].(map[string]any)
	require.True(t, ok)
	args, _, err := unstructured.NestedStringSlice(container, "args")
	require.NoError(t, err)
	return args[index]
}

// gone reports whether an object does not exist.
func gone(ctx context.Context, object client.Object) bool {
	return apierrors.IsNotFound(plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object))
}
