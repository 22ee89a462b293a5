package authors_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// ofJob reports whether a pod is one of a Job, which the tests play.
func ofJob(pod *corev1.Pod) bool {
	_, ofJob := pod.Labels[batchv1.JobNameLabel]
	return ofJob
}

// finish waits for a pod of a Job, and ends it with success.
func finish(t *testing.T, cluster, namespace, job string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		err := clusters[cluster].Client.List(t.Context(), &pods, client.InNamespace(namespace),
			client.MatchingLabels{batchv1.JobNameLabel: job})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
				pod.Status.Phase = corev1.PodSucceeded
				return clusters[cluster].Client.Status().Update(t.Context(), pod)
			}
		}
		return fmt.Errorf("there is no pod of Job %s on %s", job, cluster)
	})
}

// enable creates a ManagedClusterAddOn with a spec and annotations.
func enable(t *testing.T, addOn, cluster, spec string, annotations map[string]string) {
	t.Helper()
	text := fmt.Sprintf("apiVersion: addon.open-cluster-management.io/v1beta1\nkind: ManagedClusterAddOn\n"+
		"metadata: {name: %s, namespace: %s}\nspec: %s\n", addOn, cluster, spec)
	objects, err := sandbox.Decode([]byte(text))
	require.NoError(t, err)
	objects[0].SetAnnotations(annotations)
	require.NoError(t, plane.Client.Create(t.Context(), objects[0]))
}

// disable deletes a ManagedClusterAddOn.
func disable(t *testing.T, addOn, cluster string) {
	t.Helper()
	require.NoError(t, plane.Client.Delete(t.Context(), addOnOf(addOn, cluster)))
}

func addOnOf(addOn, cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addOn}}
}

// says waits until conditions of an add-on, each as "Type=Status", hold.
func says(t *testing.T, addOn, cluster string, conditions ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		found, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn})
		if err != nil {
			return err
		}
		for _, want := range conditions {
			kind, status, _ := strings.Cut(want, "=")
			if !meta.IsStatusConditionPresentAndEqual(found.Status.Conditions, kind, metav1.ConditionStatus(status)) {
				return fmt.Errorf("%s on %s: not %s: %+v", addOn, cluster, want, found.Status.Conditions)
			}
		}
		return nil
	})
}

// get waits for an object on a cluster and returns it.
func get[O client.Object](t *testing.T, cluster, namespace, name string, object O) O {
	t.Helper()
	suite.Eventually(t, func() error {
		return clusters[cluster].Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
	return object
}

// goes waits until objects are gone.
func goes(t *testing.T, from *suite.Plane, objects ...client.Object) {
	t.Helper()
	suite.Eventually(t, func() error {
		var left []error
		for _, object := range objects {
			if err := from.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				left = append(left, fmt.Errorf("%T %s is left on %s (%w), finalizers %v", object, object.GetName(), from.Name, err,
					object.GetFinalizers()))
			}
		}
		return errors.Join(left...)
	})
}

// at is the metadata of an object.
func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
