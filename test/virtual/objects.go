package virtual

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// space is the namespace of the Placements.
	space = "add-ons"
	// atOnce is how many clusters move at a time in a rollout.
	atOnce = 5
	// hubRole is the ClusterRole that each add-on has in the namespaces of its clusters.
	hubRole = "add-on-reader"
	// soak is how long a cluster must have had the next image before another one gets it in its place.
	soak = time.Minute
	// canary names the group of clusters that get a grouped add-on first, canaryLabel is their label.
	canary, canaryLabel = "canary", "example.com/canary"
)

// kind is how an add-on is installed and rolled out.
type kind int

const (
	// plain add-ons have one PlacementDecision, which tolerates everything. They have a pre-delete hook, and clusters may
	// have configurations of their own for them.
	plain kind = iota
	// grouped add-ons go to the canaries first, then to groups of others, and have no toleration: a cluster that cannot be
	// reached is not selected, and keeps what it has.
	grouped
	// foreign add-ons are scheduled by another program, in several PlacementDecisions, and tolerate nothing at first.
	foreign
	// counted add-ons go to some of the clusters that people label, and stay there when there are more.
	counted
	kinds
)

// kindOf is the kind of an add-on.
func kindOf(addOn string) kind {
	var i int
	if _, err := fmt.Sscanf(addOn, addOnFormat, &i); err != nil {
		return plain
	}
	return kind(i % int(kinds))
}

const addOnFormat = "addon-%02d"

// isHooked reports whether an add-on has a pre-delete hook, and supports configurations besides its template.
func isHooked(addOn string) bool { return strings.HasPrefix(addOn, "addon-") && kindOf(addOn) == plain }

// addOnName is the name of an add-on.
func addOnName(i int) string { return fmt.Sprintf(addOnFormat, i) }

// credentialOf is the Secret with the credential of an add-on, on its cluster.
func credentialOf(addOn string) string { return addOn + "-hub-kubeconfig" }

// labelOf is the label of a ManagedCluster that selects it for an add-on.
func labelOf(addOn string) string { return "select.example.com/" + addOn }

// otherLabelOf is another one, which counts where the Placement has it, too.
func otherLabelOf(addOn string) string { return "other.example.com/" + addOn }

// mixed draws a number for some texts, always the same.
func mixed(texts ...string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(texts, "/")))
	return h.Sum32()
}

// hubObjects holds what a hub has before there are clusters and add-ons.
func hubObjects() []client.Object {
	all := clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	others := clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceHub}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedSpace}},
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: "global"}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: all},
		},
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: others},
		},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "global", Namespace: space},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "global"},
		},
	}
}

// addOnObjects is an add-on: a template, who gets it, and how.
func addOnObjects(name, image string) []client.Object {
	return []client.Object{template(name, image), placementOf(name), definitionOf(name)}
}

// definitionOf is the definition of an add-on.
func definitionOf(name string) *addonv1alpha1.ClusterManagementAddOn {
	referent := addonv1alpha1.ConfigReferent{Name: name}
	supported := []addonv1alpha1.ConfigMeta{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource(confighash.Template()), DefaultConfig: &referent,
	}}
	if isHooked(name) {
		supported = append(supported, addonv1alpha1.ConfigMeta{ConfigGroupResource: configKind()})
	}
	return &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: supported,
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type: addonv1alpha1.AddonInstallStrategyPlacements,
				Placements: []addonv1alpha1.PlacementStrategy{{
					PlacementRef:    addonv1alpha1.PlacementRef{Name: name, Namespace: space},
					RolloutStrategy: rolloutOf(kindOf(name)),
				}},
			},
		},
	}
}

// rolloutOf is how an add-on is rolled out.
func rolloutOf(k kind) clusterv1alpha1.RolloutStrategy {
	common := clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: soak}}
	if k == grouped {
		return clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup,
			ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: common,
				MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
					MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: canary}},
				},
			},
		}
	}
	return clusterv1alpha1.RolloutStrategy{
		Type:        clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{RolloutConfig: common, MaxConcurrency: intstr.FromInt32(atOnce)},
	}
}

// toleratesAll tolerates every taint.
func toleratesAll() []clusterv1beta1.Toleration {
	return []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
}

// labelled selects clusters that have a label.
func labelled(label string) clusterv1beta1.ClusterPredicate {
	return clusterv1beta1.ClusterPredicate{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
	}}
}

// placementOf is who gets an add-on.
func placementOf(name string) *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: space},
		Spec: clusterv1beta1.PlacementSpec{
			Predicates:  []clusterv1beta1.ClusterPredicate{labelled(labelOf(name))},
			Tolerations: toleratesAll(),
		},
	}
	switch kindOf(name) {
	case grouped:
		p.Spec.Tolerations = nil
		p.Spec.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{
			ClustersPerDecisionGroup: intstr.FromString(fmt.Sprint(groupPercent, "%")),
			DecisionGroups: []clusterv1beta1.DecisionGroup{{
				GroupName: canary,
				ClusterSelector: clusterv1beta1.GroupClusterSelector{
					LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{canaryLabel: "yes"}},
				},
			}},
		}
	case foreign:
		p.Spec.Tolerations = nil
		p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(pageOf)
		p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	case plain:
		if isHooked(name) { // an expression that costs as much as the square of how many claims a cluster has
			p.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{
				"!has(managedCluster.status.clusterClaims) || " +
					"managedCluster.status.clusterClaims.all(c, managedCluster.status.clusterClaims.all(d, " +
					"c.name != d.value))",
			}
		}
	case counted:
		p.Spec.NumberOfClusters = new(int32(countedClusters))
	case kinds:
	}
	return p
}

// countedClusters are how many clusters have a counted add-on.
const countedClusters = 8

// canaries are how many clusters get a grouped add-on first: those with the highest numbers, which others come before
// when clusters are taken by their names.
const canaries = 2

// groupPercent is how many of the clusters of a grouped add-on are a group.
const groupPercent = 20

// most is how many clusters of a fleet may move at a time to the next image of an add-on.
func most(addOn string, clusters int) int {
	if kindOf(addOn) == grouped {
		return (clusters*groupPercent + 99) / 100
	}
	return atOnce
}

// template is the template of an add-on with an image.
func template(name, image string) *addonv1alpha1.AddOnTemplate {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: names.NamespaceAgentAddon},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}},
			},
		},
	}
	manifests := []workv1.Manifest{manifest(deployment)}
	if isHooked(name) {
		manifests = append(manifests, manifest(hook(name)))
	}
	permissions := []addonv1alpha1.HubPermissionConfig{{
		Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
		CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: hubRole},
	}}
	if kindOf(name) == grouped {
		permissions = append(permissions, addonv1alpha1.HubPermissionConfig{
			Type: addonv1alpha1.HubPermissionsBindingSingleNamespace,
			SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
				Namespace: sharedSpace,
				RoleRef:   rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hubRole},
			},
		})
	}
	return &addonv1alpha1.AddOnTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: addonv1alpha1.AddOnTemplateSpec{
			AddonName: name,
			AgentSpec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests}},
			Registration: []addonv1alpha1.RegistrationSpec{{
				Type:       addonv1alpha1.RegistrationTypeKubeClient,
				KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions},
			}},
		},
	}
}

// hook is a Job that runs on a cluster before the add-on goes.
func hook(name string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-goes", Namespace: names.NamespaceAgentAddon,
			Annotations: map[string]string{names.AnnotationPreDelete: ""},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "hook", Image: "hook"}},
		}}},
	}
}

func manifest(object client.Object) workv1.Manifest {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("encoding a manifest: %v", err))
	}
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// imageOf returns the image of a Deployment of an add-on.
func imageOf(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// setLabel changes the labels of a cluster so that it is selected for an add-on, or not.
func setLabel(cluster *clusterv1.ManagedCluster, addOn string, selected bool) {
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	delete(cluster.Labels, otherLabelOf(addOn))
	if delete(cluster.Labels, labelOf(addOn)); selected {
		cluster.Labels[labelOf(addOn)] = "yes"
	}
}
