package migration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	hubNamespace = "open-cluster-management-hub"
	setLabel     = "cluster.open-cluster-management.io/clusterset"
	// Finalizers of OCM's hub.
	apiCleanup     = "cluster.open-cluster-management.io/api-resource-cleanup"
	clusterCleanup = "cluster.open-cluster-management.io/resource-cleanup"
	workCleanup    = "cluster.open-cluster-management.io/manifest-work-cleanup"
	preDelete      = "addon.open-cluster-management.io/addon-pre-delete"
	hostedCleanup  = "addon.open-cluster-management.io/hosting-manifests-cleanup"
)

// as returns a client of a program of OCM's, which writes under the name that its managed fields have.
func as(t *testing.T, account, manager string) client.Client {
	t.Helper()
	c := plane.Account(t, hubNamespace, account)
	return client.WithFieldOwner(c, manager)
}

// leaveAsOCM builds what OCM leaves: programs, definitions, clusters, add-ons and works.
func leaveAsOCM(t *testing.T) {
	t.Helper()
	require.NoError(t, plane.Apply(t.Context(), manifests.CRDs()...))
	apply(t, "addons.yaml")
	clusters(t)
	apply(t, "programs.yaml") // From here on, nobody writes clusters and works but by its webhooks.
	programs(t)
	exempt(t, func() { works(t) })
	// OCM's webhook converts add-ons, and does not run either.
	definitions, err := sandbox.CRDsWithConversion(apiextensionsv1.WebhookClientConfig{
		Service: &apiextensionsv1.ServiceReference{Namespace: hubNamespace, Name: "cluster-manager-addon-webhook"},
	})
	require.NoError(t, err)
	require.NoError(t, plane.Apply(t.Context(), definitions...))
}

func apply(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, plane.Apply(t.Context(), raw))
}

// exempt runs a function while the webhooks of OCM are answered, as far as a test can tell: without them.
func exempt(t *testing.T, do func()) {
	t.Helper()
	for _, name := range []string{
		"managedclustervalidators.admission.cluster.open-cluster-management.io",
		"manifestworkvalidators.admission.work.open-cluster-management.io",
	} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("admissionregistration.k8s.io/v1")
		u.SetKind("ValidatingWebhookConfiguration")
		u.SetName(name)
		require.NoError(t, plane.Client.Delete(t.Context(), u))
	}
	do()
	apply(t, "programs.yaml")
}

// programs are the Deployments of OCM's hub.
func programs(t *testing.T) {
	t.Helper()
	create := func(namespace, name string) {
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/ocm"}}
		require.NoError(t, plane.Client.Create(t.Context(), d))
	}
	create("open-cluster-management", "cluster-manager")
	for _, name := range []string{
		"registration-controller", "registration-webhook", "placement-controller", "addon-manager-controller",
		"addon-webhook", "work-webhook",
	} {
		create(hubNamespace, "cluster-manager-"+name)
	}
}

// clusters are three that have joined, with their access. c1 and c2 have hello.
func clusters(t *testing.T) {
	t.Helper()
	for _, name := range []string{"c1", "c2", "c3"} {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{clusterCleanup, apiCleanup}, Labels: map[string]string{setLabel: "default"},
		}}
		if name != "c3" {
			cluster.Labels["hello"] = "yes"
		}
		cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, 60
		require.NoError(t, plane.Client.Create(t.Context(), cluster))
		for _, kind := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
			cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "ByOCM", LastTransitionTime: metav1.Now(),
			})
		}
		require.NoError(t, plane.Client.Status().Update(t.Context(), cluster))
		access(t, name)
	}
}

func access(t *testing.T, cluster string) {
	t.Helper()
	labels := map[string]string{names.LabelClusterName: cluster}
	role := "open-cluster-management:managedcluster:" + cluster
	subjects := []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:open-cluster-management:" + cluster,
	}}
	ref := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	holder, now := "managed-cluster-lease", metav1.NewMicroTime(time.Now())
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: labels}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role, Labels: labels}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role, Labels: labels}, RoleRef: ref(role), Subjects: subjects,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: role + ":registration", Labels: labels},
			RoleRef:    ref("open-cluster-management:managedcluster:registration"), Subjects: subjects,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: role + ":work", Labels: labels, Finalizers: []string{workCleanup},
			},
			RoleRef: ref("open-cluster-management:managedcluster:work"), Subjects: subjects,
		},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: holder, Labels: labels},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		},
	} {
		require.NoError(t, plane.Client.Create(t.Context(), o))
	}
}

// works are the add-ons that OCM's add-on manager installed and their ManifestWorks, and others beside them.
func works(t *testing.T) {
	t.Helper()
	manager := as(t, "addon-manager-controller-sa", "addon")
	decide(t, "c1", "c2")
	hello := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hello","namespace":"default"},"data":{"cluster":%q}}`
	for _, cluster := range []string{"c1", "c2"} {
		addOn := install(t, manager, cluster, "hello", preDelete)
		deployed(t, manager, addOn, "hello", fmt.Sprintf(hello, cluster))
	}
	hooked := install(t, manager, "c2", "hooked", "cluster.open-cluster-management.io/addon-pre-delete")
	deployed(t, manager, hooked, "hooked",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hooked","namespace":"default"},"data":{}}`)
	install(t, manager, "c2", "framework", hostedCleanup)
	byHand := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c3", Name: "hello"}}
	require.NoError(t, client.WithFieldOwner(plane.Client, "kubectl-create").Create(t.Context(), byHand))
	own(t, manager, byHand)
	deployed(t, manager, byHand, "hello", fmt.Sprintf(hello, "c3"))
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "mine", Finalizers: []string{workCleanup},
	}}
	work.Spec.Workload.Manifests = manifest(fmt.Sprintf(hello, "mine"))
	require.NoError(t, plane.Client.Create(t.Context(), work))
}

// decide holds what OCM's placement controller decided for hello.
func decide(t *testing.T, selected ...string) {
	t.Helper()
	var placement clusterv1beta1.Placement
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "apps", Name: "hello"}, &placement))
	page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "apps", Name: "hello-decision-1", Labels: map[string]string{
			names.LabelPlacement: "hello", names.LabelDecisionGroupIndex: "0", names.LabelDecisionGroupName: "",
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&placement,
			schema.GroupVersionKind{Group: clusterv1beta1.GroupName, Version: "v1beta1", Kind: "Placement"})},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), page))
	for _, name := range selected {
		page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	require.NoError(t, plane.Client.Status().Update(t.Context(), page))
	placement.Status.NumberOfSelectedClusters = int32(len(selected))
	placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{
		Decisions: []string{page.Name}, ClustersCount: int32(len(selected)),
	}}
	placement.Status.Conditions = []metav1.Condition{{
		Type: "PlacementSatisfied", Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled", LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, plane.Client.Status().Update(t.Context(), &placement))
}

func ownerOf(t *testing.T, name string) metav1.OwnerReference {
	t.Helper()
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &cma))
	return *metav1.NewControllerRef(&cma, kindOf("ClusterManagementAddOn"))
}

// kindOf is a kind of add-ons as owner references name it.
func kindOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: kind}
}

// install creates an add-on as OCM's add-on manager does for a placement, or as that of an author.
func install(t *testing.T, c client.Client, cluster, name string, finalizers ...string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, OwnerReferences: []metav1.OwnerReference{ownerOf(t, name)},
	}}
	require.NoError(t, c.Create(t.Context(), addOn))
	addOn.Finalizers = finalizers
	require.NoError(t, c.Update(t.Context(), addOn))
	return addOn
}

// own gives an add-on its owner, as OCM's add-on manager does with those that people made.
func own(t *testing.T, c client.Client, addOn *addonv1alpha1.ManagedClusterAddOn) {
	t.Helper()
	addOn.OwnerReferences = []metav1.OwnerReference{ownerOf(t, addOn.Name)}
	require.NoError(t, c.Update(t.Context(), addOn))
}

func manifest(raw string) []workv1.Manifest {
	return []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
}

// deployed creates the work of an add-on of a template, as its agent has applied it, and the status that follows.
func deployed(t *testing.T, c client.Client, addOn *addonv1alpha1.ManagedClusterAddOn, template, raw string) {
	t.Helper()
	u, _ := confighash.New(confighash.Template())
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: template}, u))
	hash, err := confighash.SpecHash(u)
	require.NoError(t, err)
	referent := addonv1beta1.ConfigReferent{Name: template}
	hashes, err := json.Marshal(map[string]string{confighash.Key(confighash.Template(), referent): hash})
	require.NoError(t, err)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addOn.Namespace, Name: "addon-" + addOn.Name + "-deploy-0",
		Labels:      map[string]string{names.LabelAddonName: addOn.Name},
		Annotations: map[string]string{names.AnnotationConfigSpecHash: string(hashes)},
		Finalizers:  []string{workCleanup},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(addOn,
			kindOf("ManagedClusterAddOn"))},
	}}
	work.Spec.Workload.Manifests = manifest(raw)
	require.NoError(t, c.Create(t.Context(), work))
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "ByAgent", ObservedGeneration: work.Generation,
			LastTransitionTime: metav1.Now(),
		})
	}
	require.NoError(t, plane.Client.Status().Update(t.Context(), work))

	of := addonv1alpha1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addontemplates"}
	desired := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: template}, SpecHash: hash}
	addOn.Status.SupportedConfigs = []addonv1alpha1.ConfigGroupResource{of}
	addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: of, ConfigReferent: desired.ConfigReferent, LastObservedGeneration: 1,
		DesiredConfig: desired, LastAppliedConfig: desired,
	}}
	addOn.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckModeCustomized
	for kind, reason := range map[string]string{
		"Configured": "ConfigurationsConfigured", "ManifestApplied": "AddonManifestApplied",
		"RegistrationApplied": "NilRegistration", "Available": "ProbeAvailable",
	} {
		addOn.Status.Conditions = append(addOn.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		})
	}
	require.NoError(t, c.Status().Update(t.Context(), addOn))
}
