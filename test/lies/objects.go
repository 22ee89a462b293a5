package lies

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// space is the namespace of Placements on the hub, and of the objects of works on clusters.
	space = "lies"
	// hubRole is the ClusterRole that each add-on has in the namespaces of its clusters.
	hubRole = "lies-reader"
	// bad is the prefix of images that do not run, done that of images of pods that end well.
	bad, done = "bad-", "hook-"
	// owner is who wrote the objects of others.
	owner = "jane"
)

// stageObjects are the objects of the hub that all plays share.
func stageObjects() []client.Object {
	reads := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "global", Namespace: space},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "global"},
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: hubRole}, Rules: []rbacv1.PolicyRule{reads}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: hubRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hubRole},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Name: names.ServiceAccountAddons, Namespace: names.NamespaceHub,
			}},
		},
	}
}

// labelOf is the label of a ManagedCluster that selects it for an add-on.
func labelOf(addOn string) string { return "select.example.com/" + addOn }

// management is a ClusterManagementAddOn that a Placement installs.
func management(name string, atOnce int) *addonv1alpha1.ClusterManagementAddOn {
	return &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource(confighash.Template()),
				DefaultConfig:       &addonv1alpha1.ConfigReferent{Name: name},
			}},
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type: addonv1alpha1.AddonInstallStrategyPlacements,
				Placements: []addonv1alpha1.PlacementStrategy{{
					PlacementRef: addonv1alpha1.PlacementRef{Name: name, Namespace: space},
					RolloutStrategy: clusterv1alpha1.RolloutStrategy{
						Type:        clusterv1alpha1.Progressive,
						Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt(atOnce)},
					},
				}},
			},
		},
	}
}

// byHand is a ClusterManagementAddOn that people install.
func byHand(name string) *addonv1alpha1.ClusterManagementAddOn {
	o := management(name, 1)
	o.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
	return o
}

// placement selects the clusters with the label of an add-on.
func placement(name string) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: space},
		Spec: clusterv1beta1.PlacementSpec{
			Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelOf(name): "yes"}},
			}}},
			Tolerations: []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}},
		},
	}
}

// template is the template of an add-on with an image, and with a hook that runs before it goes if hooked.
func template(name, image string, hooked bool) *addonv1alpha1.AddOnTemplate {
	labels := map[string]string{"app": name}
	pod := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}},
		}
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: names.NamespaceAgentAddon}
	manifests := []workv1.Manifest{manifest(&appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod(image)},
	})}
	if hooked {
		hook := pod(done + name)
		hook.Labels = nil
		hook.Spec.RestartPolicy = corev1.RestartPolicyNever
		job := &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: *meta.DeepCopy(),
			Spec: batchv1.JobSpec{Template: hook},
		}
		job.Annotations = map[string]string{names.AnnotationPreDelete: ""}
		manifests = append(manifests, manifest(job))
	}
	return &addonv1alpha1.AddOnTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: addonv1alpha1.AddOnTemplateSpec{
			AddonName: name,
			AgentSpec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests}},
			Registration: []addonv1alpha1.RegistrationSpec{{
				Type: addonv1alpha1.RegistrationTypeKubeClient,
				KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{
					HubPermissions: []addonv1alpha1.HubPermissionConfig{{
						Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
						CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: hubRole},
					}},
				},
			}},
		},
	}
}

// manifest is an object as a work has it.
func manifest(o client.Object) workv1.Manifest {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("encoding a manifest: %v", err))
	}
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// configMap is an object of a work.
func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: space}, Data: map[string]string{"value": value},
	}
}

// work is a work with ConfigMaps.
func work(cluster, name string, objects ...*corev1.ConfigMap) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	for _, o := range objects {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifest(o))
	}
	return w
}

// applies adds how an object of a work is applied.
func applies(w *workv1.ManifestWork, name string, how workv1.UpdateStrategyType) {
	w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: space, Name: name},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: how},
	})
}

// imageOf returns the image of a Deployment.
func imageOf(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// imageIn returns the image of the Deployment in a work; empty if there is none.
func imageIn(w *workv1.ManifestWork) string {
	for _, m := range w.Spec.Workload.Manifests {
		var d appsv1.Deployment
		if json.Unmarshal(m.Raw, &d) == nil && d.Kind == "Deployment" {
			return imageOf(&d)
		}
	}
	return ""
}

// isAvailable reports whether a Deployment runs with its present image.
func isAvailable(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.AvailableReplicas > 0 && s.UpdatedReplicas == s.Replicas
}

// isDone reports whether a Job has completed.
func isDone(j *batchv1.Job) bool { return j.Status.Succeeded > 0 }

// addOnOf is the add-on of a work of the hub manager; empty for a work of people.
func addOnOf(w *workv1.ManifestWork) string { return w.Labels[names.LabelAddonName] }

// withLabel returns labels with one set or, for an empty value, removed.
func withLabel(labels map[string]string, key, value string) map[string]string {
	after := maps.Clone(labels)
	if after == nil {
		after = map[string]string{}
	}
	if after[key] = value; value == "" {
		delete(after, key)
	}
	return after
}

// isBad reports whether an image does not run.
func isBad(image string) bool { return strings.HasPrefix(image, bad) }
