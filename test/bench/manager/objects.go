package manager

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// namespaceAddOns has the placement of the add-ons on the hub.
	namespaceAddOns = "bench-addons"
	// placementName is the Placement that selects all clusters, by the label that they all have.
	placementName = "all"
	labelBench    = "bench.spokelet.io/fleet"
	// roleName is the role that the agents of the add-ons are bound to.
	roleName = "bench-agents"
	apiGroup = "addon.open-cluster-management.io"
)

func clusterName(i int) string { return fmt.Sprintf("cluster-%04d", i) }

func addOnName(i int) string { return fmt.Sprintf("bench-%02d", i) }

// templateName is the name of the template of an add-on at a revision.
func templateName(addOn string, revision int) string { return fmt.Sprintf("%s-r%d", addOn, revision) }

// groundwork holds what all add-ons need: a placement, and a role that the hub manager may hand out.
func groundwork() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceAddOns}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons,
			}},
		},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceAddOns, Name: "global"},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "global"},
		},
		&clusterv1beta1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceAddOns, Name: placementName},
			Spec: clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{{
				RequiredClusterSelector: clusterv1beta1.ClusterSelector{
					LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelBench: "true"}},
				},
			}}},
		},
	}
}

// management is an add-on that the placement installs at a revision of its template.
func management(addOn string, revision int) *addonv1alpha1.ClusterManagementAddOn {
	return &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: addOn, Annotations: map[string]string{names.AnnotationLifecycle: "addon-manager"},
		},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{ConfigGroupResource: templates()}},
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type: addonv1alpha1.AddonInstallStrategyPlacements,
				Placements: []addonv1alpha1.PlacementStrategy{{
					PlacementRef: addonv1alpha1.PlacementRef{Namespace: namespaceAddOns, Name: placementName},
					Configs:      []addonv1alpha1.AddOnConfig{config(addOn, revision)},
				}},
			},
		},
	}
}

// byHand is an add-on that people install cluster by cluster, with a template as its default.
func byHand(addOn, template string) *addonv1alpha1.ClusterManagementAddOn {
	return &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: addOn, Annotations: map[string]string{names.AnnotationLifecycle: "addon-manager"},
		},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{
				ConfigGroupResource: templates(), DefaultConfig: &addonv1alpha1.ConfigReferent{Name: template},
			}},
			InstallStrategy: addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
		},
	}
}

// templates is the kind of configuration that a template is.
func templates() addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: apiGroup, Resource: "addontemplates"}
}

// config names the template of an add-on at a revision.
func config(addOn string, revision int) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: templates(),
		ConfigReferent:      addonv1alpha1.ConfigReferent{Name: templateName(addOn, revision)},
	}
}

// template is the template of an add-on at a revision: a ServiceAccount, a ConfigMap and a Deployment with a credential
// for the hub.
func template(addOn string, revision int) (*addonv1alpha1.AddOnTemplate, error) {
	meta := metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: addOn}
	t := &addonv1alpha1.AddOnTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: templateName(addOn, revision)},
		Spec: addonv1alpha1.AddOnTemplateSpec{
			AddonName: addOn,
			Registration: []addonv1alpha1.RegistrationSpec{{
				Type: addonv1alpha1.RegistrationTypeKubeClient,
				KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{
					HubPermissions: []addonv1alpha1.HubPermissionConfig{{
						Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
						CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: roleName},
					}},
				},
			}},
		},
	}
	for _, object := range []any{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta},
		&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta,
			Data: map[string]string{"cluster": "{{CLUSTER_NAME}}", "revision": fmt.Sprint(revision)},
		},
		deployment(meta, revision),
	} {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding an object of template %s: %w", t.Name, err)
		}
		t.Spec.AgentSpec.Workload.Manifests = append(t.Spec.AgentSpec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return t, nil
}

// deployment is the agent of an add-on.
func deployment(meta metav1.ObjectMeta, revision int) *appsv1.Deployment {
	labels := map[string]string{"app": meta.Name}
	one := int32(1)
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: meta.Name,
					Containers: []corev1.Container{{
						Name: "agent", Image: fmt.Sprintf("example.com/agent:r%d", revision),
						Args: []string{"--cluster-name={{CLUSTER_NAME}}", "--hub-kubeconfig={{HUB_KUBECONFIG}}"},
					}},
				},
			},
		},
	}
}
