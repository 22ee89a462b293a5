package scenarios_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// gitOps is the field manager of the tool that applies the stories.
const gitOps = "gitops"

// story is an add-on that is deployed from a file.
type story struct {
	*testing.T
	// addOn is its name, for which ADDON is in the file.
	addOn string
	// file is the name of the file in testdata.
	file string
}

// apply applies all documents of the file as a GitOps tool does: in whatever order, here the last one first, each again
// until it is accepted; and all once more later. It takes no field from anybody. Replacements are pairs of what stands
// in the file and what is to.
func (s story) apply(replacements ...string) {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", s.file))
	require.NoError(s, err)
	for i := 0; i+1 < len(replacements); i += 2 {
		require.Contains(s, string(raw), replacements[i])
	}
	text := strings.NewReplacer(append(replacements, "ADDON", s.addOn)...).Replace(string(raw))
	objects := parse(s.T, text)
	slices.Reverse(objects)
	s.applyAll(objects)
	slices.Reverse(objects)
	s.applyAll(objects)
}

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, object)
	}
}

// applyAll applies objects until each was accepted once.
func (s story) applyAll(objects []*unstructured.Unstructured) {
	s.Helper()
	left := slices.Clone(objects)
	suite.Eventually(s, func() error {
		var refused []error
		left = slices.DeleteFunc(left, func(object *unstructured.Unstructured) bool {
			err := plane.Client.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
				client.FieldOwner(gitOps))
			if err != nil {
				refused = append(refused, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
			}
			return err == nil
		})
		return errors.Join(refused...)
	})
}

// says waits until a condition of the add-on on a cluster has a status and a reason, and its message all the texts. It
// returns the condition.
func (s story) says(
	cluster, kind string, status metav1.ConditionStatus, reason string, texts ...string,
) *metav1.Condition {
	s.Helper()
	var c *metav1.Condition
	suite.Eventually(s, func() error {
		addOn, err := plane.AddOns.GetAddOn(s.Context(), types.NamespacedName{Namespace: cluster, Name: s.addOn})
		if err != nil {
			return err
		}
		c = meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || !containsAll(c.Message, texts) {
			return fmt.Errorf("%s on %s is not %s, %s with %q: %v", kind, cluster, status, reason, texts,
				addOn.Status.Conditions)
		}
		return nil
	})
	return c
}

// runs waits until the add-on on a cluster has what it should have, and is available.
func (s story) runs(cluster string) {
	s.Helper()
	s.says(cluster, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse,
		addonv1beta1.ProgressingReasonCompleted)
	s.says(cluster, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue,
		addonv1beta1.AddonAvailableReasonProbeAvailable)
}

// counts waits until the condition Progressing of the only placement of the ClusterManagementAddOn has all the texts.
func (s story) counts(texts ...string) {
	s.Helper()
	suite.Eventually(s, func() error {
		management, err := plane.AddOns.GetClusterManagementAddOn(s.Context(), s.addOn)
		if err != nil {
			return err
		}
		for _, progression := range management.Status.InstallProgressions {
			for _, c := range progression.Conditions {
				if c.Type == addonv1beta1.ManagedClusterAddOnConditionProgressing && containsAll(c.Message, texts) {
					return nil
				}
			}
		}
		return fmt.Errorf("no condition says %q: %+v", texts, management.Status.InstallProgressions)
	})
}

// deleteManagement deletes the ClusterManagementAddOn as a person does.
func (s story) deleteManagement() {
	s.Helper()
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}}
	// An add-on follows its owner, which is set in a race with the first statuses: in the first seconds it may have none.
	suite.Eventually(s, func() error {
		var all addonv1beta1.ManagedClusterAddOnList
		if err := plane.Client.List(s.Context(), &all); err != nil {
			return err
		}
		for i := range all.Items {
			if addOn := &all.Items[i]; addOn.Name == s.addOn && len(addOn.OwnerReferences) == 0 {
				return fmt.Errorf("the add-on on %s has no owner", addOn.Namespace)
			}
		}
		return nil
	})
	require.NoError(s, plane.Client.Delete(s.Context(), management))
}

func containsAll(message string, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(message, text) })
}

// get waits for an object on a cluster and returns it.
func get[O client.Object](t *testing.T, cluster, namespace, name string, object O) O {
	t.Helper()
	suite.Eventually(t, func() error {
		return clusters[cluster].Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
	return object
}

// goes waits until objects are gone from a cluster.
func goes(t *testing.T, cluster string, objects ...client.Object) {
	t.Helper()
	suite.Eventually(t, func() error {
		for _, object := range objects {
			err := clusters[cluster].Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s is still on %s (%w): %v", object, object.GetName(), cluster, err,
					object.GetDeletionTimestamp())
			}
		}
		return nil
	})
}

// image waits until the first container of a Deployment has an image.
func image(t *testing.T, cluster, namespace, name, want string) {
	t.Helper()
	suite.Eventually(t, func() error { return hasImage(t, cluster, namespace, name, want) })
}

// hasImage returns why the first container of a Deployment does not have an image.
func hasImage(t *testing.T, cluster, namespace, name, want string) error {
	t.Helper()
	var d appsv1.Deployment
	err := clusters[cluster].Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &d)
	if err != nil {
		return err
	}
	if have := d.Spec.Template.Spec.Containers[0].Image; have != want {
		return fmt.Errorf("%s on %s has image %s instead of %s", name, cluster, have, want)
	}
	return nil
}
