package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// applyWork creates a work, or gives it the manifests that it should have, and returns it as the hub has it.
func (m *crew) applyWork(ctx context.Context, want *workv1.ManifestWork) (*workv1.ManifestWork, error) {
	works := m.works.WorkV1().ManifestWorks(want.Namespace)
	found, err := works.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		found, err = works.Create(ctx, want, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(found.Spec.Workload, want.Spec.Workload):
		found.Spec = want.Spec
		found, err = works.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("applying work %s: %w", want.Name, err)
	}
	return found, nil
}

// ownedBy is the add-on as the owner of what goes with it, in the version that managers of addon-framework name.
func ownedBy(addOn *addonv1alpha1.ManagedClusterAddOn) []metav1.OwnerReference {
	kind := schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1beta1", Kind: "ManagedClusterAddOn"}
	return []metav1.OwnerReference{*metav1.NewControllerRef(addOn, kind)}
}

// workOf is a work of the add-on on the cluster of its agent.
func workOf(addOn *addonv1alpha1.ManagedClusterAddOn, name string, objects ...runtime.Object) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addOn.Namespace, Name: name, Labels: map[string]string{labelAddOn: crewName},
		OwnerReferences: ownedBy(addOn),
	}}
	for _, object := range objects {
		raw, err := json.Marshal(object)
		if err != nil {
			continue // These are objects of this program, which can be encoded.
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return work
}

// crewWork is the work with the agent.
func crewWork(addOn *addonv1alpha1.ManagedClusterAddOn, image string) *workv1.ManifestWork {
	labels := map[string]string{"app": "crew-agent"}
	return workOf(addOn, "addon-crew-deploy-0",
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: crewNamespace},
		},
		&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: crewNamespace, Name: "crew-agent"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: crewPod(image, addOn.Namespace, "crew-agent"),
				},
			},
		})
}

// crewHook is the work with the Job that runs before the add-on goes. Feedback tells when it completed.
func crewHook(addOn *addonv1alpha1.ManagedClusterAddOn, image string) *workv1.ManifestWork {
	pod := crewPod(image, addOn.Namespace, "crew-goodbye")
	pod.RestartPolicy = corev1.RestartPolicyNever
	work := workOf(addOn, "addon-crew-pre-delete", &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: crewNamespace, Name: "crew-goodbye"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
	})
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "batch", Resource: "jobs", Namespace: crewNamespace, Name: "crew-goodbye",
		},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
	}}
	return work
}

// jobComplete reports whether the feedback of a hook says that its Job completed.
func jobComplete(work *workv1.ManifestWork) bool {
	for _, manifest := range work.Status.ResourceStatus.Manifests {
		for _, value := range manifest.StatusFeedbacks.Values {
			if value.Name == "JobComplete" && value.Value.String != nil && *value.Value.String == "True" {
				return true
			}
		}
	}
	return false
}

// crewPod is a pod of the add-on that does something of this program with the credential for the hub.
func crewPod(image, cluster, what string) corev1.PodSpec {
	yes, no := true, false
	volume, mount := onHub()
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{what, "--cluster=" + cluster, "--kubeconfig=/hub/kubeconfig"},
			VolumeMounts: []corev1.VolumeMount{mount},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{volume},
	}
}

// crewBinding binds the role of agents in the namespace of a cluster to the user of that cluster.
func crewBinding(addOn *addonv1alpha1.ManagedClusterAddOn) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: addOn.Namespace, Name: "crew-agent",
			OwnerReferences: ownedBy(addOn),
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "crew-agent"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: crewUser(addOn.Namespace)}},
	}
}
