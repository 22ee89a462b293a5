package hub

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// managedBy returns what a server writes into managedFields of an object.
func managedBy(managers ...string) []metav1.ManagedFieldsEntry {
	var all []metav1.ManagedFieldsEntry
	for _, manager := range managers {
		all = append(all, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{},"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`),
		})
	}
	return all
}

func conditionsOf(kinds ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range kinds {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: kind + "Reason", LastTransitionTime: metav1.Unix(1_700_000_000, 0),
			Message: "What is to be said about " + kind + " in a sentence or two, as conditions usually do.",
		})
	}
	return all
}

// someAddOn is an add-on of a template that is installed by a placement and well, as it is stored.
func someAddOn(cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	beta := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: name, UID: types.UID("uid-" + cluster + name), ResourceVersion: "12345",
			CreationTimestamp: metav1.Unix(1_700_000_000, 0), Generation: 1, ManagedFields: managedBy("spokelet-hub", "spokelet"),
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"kind":"ManagedClusterAddOn"}`, "team": "x"},
			Labels:      map[string]string{names.LabelInstalledBy: "default.placement"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: name, UID: "uid-of-" + types.UID(name),
			}},
		},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			Conditions: conditionsOf("Available", "Configured", "Progressing", "RegistrationApplied", "ManifestApplied", "ClusterCertificateRotated"),
			Namespace:  "open-cluster-management-agent-addon",
			AddOnMeta:  addonv1beta1.AddOnMeta{DisplayName: "An add-on", Description: "What it is good for"},
			RelatedObjects: []addonv1beta1.ObjectReference{{
				Group: "addon.open-cluster-management.io", Resource: "clustermanagementaddons", Name: name,
			}},
			HealthCheck: addonv1beta1.HealthCheck{Mode: addonv1beta1.HealthCheckModeCustomized},
		},
	}
	for _, resource := range []string{"addontemplates", "addondeploymentconfigs"} {
		hash := &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "default", Name: name},
			SpecHash:       "2f3a1bd0c5e4f6a79881726354433221100ffeeddccbbaa99887766554433221",
		}
		group := addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: resource}
		beta.Status.SupportedConfigs = append(beta.Status.SupportedConfigs, group)
		beta.Status.ConfigReferences = append(beta.Status.ConfigReferences, addonv1beta1.ConfigReference{
			ConfigGroupResource: group, DesiredConfig: hash, LastAppliedConfig: hash.DeepCopy(),
		})
	}
	beta.Status.Registrations = []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "csr"},
	}}
	beta.Status.Registrations[0].KubeClient.Subject.User = "system:open-cluster-management:cluster:" + cluster + ":addon:" + name
	beta.Status.Registrations[0].KubeClient.Subject.Groups = []string{"system:open-cluster-management:addon:" + name, "system:authenticated"}
	return addonapi.AddOnToAlpha(beta)
}

// someCluster is a cluster as agents of OCM report one.
func someCluster(name string) *clusterv1.ManagedCluster {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), ResourceVersion: "12345", ManagedFields: managedBy("registration", "spokelet-hub"),
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"kind":"ManagedCluster"}`, "team": "x"},
			Labels:      map[string]string{"cloud": "Amazon", "vendor": "OpenShift"}, Finalizers: []string{names.FinalizerCluster},
		},
		Spec: clusterv1.ManagedClusterSpec{
			HubAcceptsClient: true, LeaseDurationSeconds: 60,
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + name + ".example.com:6443", CABundle: make([]byte, 1500)}},
			Taints:                      []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}},
		},
		Status: clusterv1.ManagedClusterStatus{
			Conditions: conditionsOf("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable", "ManagedClusterConditionClockSynced"),
			Version:    clusterv1.ManagedClusterVersion{Kubernetes: "v1.34.1"},
			Capacity:   clusterv1.ResourceList{}, Allocatable: clusterv1.ResourceList{},
			ManagedNamespaces: []clusterv1.ClusterSetManagedNamespaceConfig{{ClusterSet: "s"}},
		},
	}
	for _, kind := range []clusterv1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi", "pods"} {
		cluster.Status.Capacity[kind] = resource.MustParse("1024Mi")
		cluster.Status.Allocatable[kind] = resource.MustParse("1000Mi")
	}
	for n := range 12 {
		cluster.Labels[fmt.Sprintf("feature.open-cluster-management.io/addon-a%d", n)] = "available"
		cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
			Name: fmt.Sprintf("claim%d.example.com", n), Value: "a value",
		})
	}
	return cluster
}

// someBinding is a binding of an add-on, or one of another client.
func someBinding(namespace, addOn string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "system:deployers", UID: types.UID("uid-" + namespace), ResourceVersion: "12345",
			ManagedFields: managedBy("manager"), Annotations: map[string]string{"description": "Lets Deployments create pods"},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:deployer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:open-cluster-management:addon:" + addOn}},
	}
	if addOn != "" {
		b.Name = "open-cluster-management:" + addOn + ":clusterrole:agent"
		b.Labels = map[string]string{names.LabelAddonName: addOn, names.LabelAddonTemplate: ""}
		b.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: addOn, UID: types.UID("mca-" + namespace),
		}}
	}
	return b
}

// someWork is a work with the agent of an add-on, as it is stored when it is applied.
func someWork(cluster, addOn string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: "addon-" + addOn + "-deploy-0", UID: types.UID("work-of-" + cluster + addOn),
		ResourceVersion: "12345", Generation: 1, ManagedFields: managedBy("spokelet-hub", "spokelet"),
		Labels: map[string]string{names.LabelAddonName: addOn}, Finalizers: []string{names.FinalizerManifestWork},
		Annotations: map[string]string{
			names.AnnotationConfigSpecHash: `{"addontemplates.addon.open-cluster-management.io//` + addOn + `":"2f3a1bd0c5e4f6a7"}`,
			names.AnnotationRenderedFrom:   `{"inputs":"` + cluster + `","by":"v1.2.3","manifests":3,"spec":"0123456789abcdef"}`,
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: addOn,
			UID: types.UID("uid-" + cluster + addOn),
		}},
	}}
	for n, kind := range []string{"ServiceAccount", "ConfigMap", "Deployment"} {
		raw := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"agent","namespace":"agents"},"data":{"cluster":%q}}`,
			kind, cluster)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{
			RawExtension: apiruntime.RawExtension{Raw: []byte(raw)},
		})
		m := workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Ordinal: int32(n), Group: "apps", Version: "v1", Kind: kind, Resource: kind + "s", Namespace: "agents",
				Name: "agent",
			},
			Conditions: conditionsOf("Applied", "Available", "StatusFeedbackSynced"),
		}
		if kind == "Deployment" {
			for _, name := range []string{"ReadyReplicas", "Replicas", "AvailableReplicas"} {
				value := int64(1)
				m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
					Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
				})
			}
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, m)
	}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "agents", Name: "agent"},
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
	}}
	work.Status.Conditions = conditionsOf("Applied", "Available")
	return work
}

// trimmed is a transformation with the kinds of objects that it is for, and what it drops of them.
type trimmed struct {
	make func(n int) client.Object
	trim func(*hubprocess.Trims) func(any) (any, error)
	// drop removes from a whole object what no reconciler reads.
	drop func(client.Object)
}

func withoutNoise(o client.Object) {
	o.SetManagedFields(nil)
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
}

func trimmedKinds() map[string]trimmed {
	cluster := func(n int) string { return fmt.Sprintf("cluster%d", n) }
	addOn := func(n int) string { return fmt.Sprintf("addon%d", n%20) }
	return map[string]trimmed{
		"ManagedClusterAddOn": {
			func(n int) client.Object { return someAddOn(cluster(n), addOn(n)) },
			trimAddOn,
			func(o client.Object) {
				withoutNoise(o)
				if a, isAddOn := o.(*addonv1alpha1.ManagedClusterAddOn); isAddOn {
					a.Status.RelatedObjects, a.Status.AddOnMeta = nil, addonv1alpha1.AddOnMeta{}
				}
			},
		},
		"ManagedClusterAddOn in v1beta1": {
			func(n int) client.Object { return addonapi.AddOnToBeta(someAddOn(cluster(n), addOn(n))) },
			trimAddOn,
			func(o client.Object) {
				withoutNoise(o)
				if a, isAddOn := o.(*addonv1beta1.ManagedClusterAddOn); isAddOn {
					a.Status.RelatedObjects, a.Status.AddOnMeta = nil, addonv1beta1.AddOnMeta{}
				}
			},
		},
		"ManagedCluster": {
			func(n int) client.Object { return someCluster(cluster(n)) },
			func(t *hubprocess.Trims) func(any) (any, error) { return t.Cluster },
			func(o client.Object) {
				withoutNoise(o)
				if c, isCluster := o.(*clusterv1.ManagedCluster); isCluster {
					c.Spec.ManagedClusterClientConfigs[0].CABundle = nil
					c.Status.ManagedNamespaces = nil
				}
			},
		},
		"RoleBinding of an add-on": {
			func(n int) client.Object { return someBinding(cluster(n), addOn(n)) },
			func(t *hubprocess.Trims) func(any) (any, error) { return t.Binding }, withoutNoise,
		},
		"RoleBinding of somebody else": {
			func(n int) client.Object { return someBinding(cluster(n), "") },
			func(t *hubprocess.Trims) func(any) (any, error) { return t.Binding },
			func(o client.Object) {
				if b, isBinding := o.(*rbacv1.RoleBinding); isBinding {
					*b = rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
						Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion,
					}}
				}
			},
		},
	}
}

func TestTheCacheKeepsAllButWhatNobodyReads(t *testing.T) {
	for name, kind := range trimmedKinds() {
		t.Run(name, func(t *testing.T) {
			var shared hubprocess.Trims
			for n := range 2 {
				want := kind.make(n)
				kind.drop(want)
				for range 2 { // A cache may transform the same object again.
					got, err := kind.trim(&shared)(kind.make(n))
					require.NoError(t, err)
					assert.Equal(t, want, got)
					got, err = kind.trim(&shared)(got)
					require.NoError(t, err)
					assert.Equal(t, want, got)
				}
			}
			stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			got, err := kind.trim(&shared)(stranger)
			require.NoError(t, err)
			assert.Equal(t, stranger, got, "other objects pass")
		})
	}
}

func TestWhichBindingsAreOurs(t *testing.T) {
	binding := func(name, label string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if label != "" {
			b.Labels = map[string]string{label: ""}
		}
		return b
	}
	for sentence, tc := range map[string]struct {
		binding *rbacv1.RoleBinding
		want    bool
	}{
		"that of an add-on":                 {binding("x", names.LabelAddonName), true},
		"that of a cluster":                 {binding("x", names.LabelClusterName), true},
		"token infrastructure":              {binding("a-token-role", tokens.LabelInfrastructure), true},
		"one that lost its labels":          {binding("open-cluster-management:managedcluster:c1:work", ""), true},
		"that of somebody else":             {binding("system:deployers", "team"), false},
		"token infrastructure of no add-on": {binding("a-token-role", ""), false},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, hubprocess.IsOurBinding(tc.binding)) })
	}
}

// TestAPatchOfATrimmedObjectDropsNothing writes trimmed copies to a server that has the whole objects.
func TestAPatchOfATrimmedObjectDropsNothing(t *testing.T) {
	scheme := apiruntime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	require.NoError(t, addonv1alpha1.Install(scheme))
	cluster, addOn := someCluster("c1"), someAddOn("c1", "a")
	for _, o := range []client.Object{cluster, addOn} {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, addOn).WithStatusSubresource(cluster, addOn).Build()
	read := func(into client.Object) {
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: into.GetNamespace(), Name: into.GetName()}, into))
	}
	var shared hubprocess.Trims
	before := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	read(before)
	whole := before.DeepCopy()
	_, err := shared.Cluster(before)
	require.NoError(t, err)
	after := before.DeepCopy()
	after.Labels["new"], after.Spec.Taints = "label", nil
	after.Status.Conditions[0].Message = "new"
	_, err = reconcile.PatchMain(t.Context(), c, before, after.DeepCopy())
	require.NoError(t, err)
	got := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	read(got)
	assert.Equal(t, whole.Spec.ManagedClusterClientConfigs, got.Spec.ManagedClusterClientConfigs)
	assert.Equal(t, whole.Status, got.Status)
	assert.Equal(t, whole.Annotations, got.Annotations)
	assert.Equal(t, "label", got.Labels["new"])
	assert.Empty(t, got.Spec.Taints)
	before.ResourceVersion, after.ResourceVersion = got.ResourceVersion, got.ResourceVersion
	_, err = reconcile.PatchStatus(t.Context(), c, before, after)
	require.NoError(t, err)
	read(got)
	assert.Equal(t, "new", got.Status.Conditions[0].Message)
	assert.True(t, whole.Status.Capacity["cpu"].Equal(got.Status.Capacity["cpu"]))
	assert.Equal(t, whole.Status.ManagedNamespaces, got.Status.ManagedNamespaces)

	cached := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}}
	read(cached)
	stored := cached.DeepCopy()
	_, err = trimAddOn(&shared)(cached)
	require.NoError(t, err)
	healthy := addonapi.AddOnToBeta(cached)
	sick := healthy.DeepCopy()
	sick.Status.Conditions[0].Status = metav1.ConditionFalse
	_, err = addonapi.Client{Client: c}.PatchAddOnStatus(t.Context(), healthy, sick)
	require.NoError(t, err)
	read(cached)
	assert.Equal(t, metav1.ConditionFalse, cached.Status.Conditions[0].Status)
	cached.Status.Conditions[0].Status, cached.ResourceVersion = metav1.ConditionTrue, stored.ResourceVersion
	assert.Equal(t, stored, cached)
}

// heapOf returns the bytes of heap that each of count decoded objects takes.
func heapOf(t *testing.T, count int, kind trimmed, trim func(any) (any, error)) float64 {
	t.Helper()
	encoded := make([][]byte, count)
	for n := range encoded {
		raw, err := json.Marshal(kind.make(n))
		require.NoError(t, err)
		encoded[n] = raw
	}
	objects := make([]any, count)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range encoded {
		object, isObject := kind.make(0).DeepCopyObject().(client.Object)
		require.True(t, isObject)
		object = zero(object)
		require.NoError(t, json.Unmarshal(encoded[n], object))
		kept, err := trim(object)
		require.NoError(t, err)
		objects[n] = kept
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(objects)
	runtime.KeepAlive(encoded)
	return float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(count)
}

// zero returns an empty object of the same type.
func zero(o client.Object) client.Object {
	switch o.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		return &addonv1alpha1.ManagedClusterAddOn{}
	case *addonv1beta1.ManagedClusterAddOn:
		return &addonv1beta1.ManagedClusterAddOn{}
	case *clusterv1.ManagedCluster:
		return &clusterv1.ManagedCluster{}
	case *workv1.ManifestWork:
		return &workv1.ManifestWork{}
	case *certificatesv1.CertificateSigningRequest:
		return &certificatesv1.CertificateSigningRequest{}
	}
	return &rbacv1.RoleBinding{}
}

// TestWhatTheCacheKeepsOfAnObject measures 1,000 objects of each kind, and holds them to their budgets in bytes.
func TestWhatTheCacheKeepsOfAnObject(t *testing.T) {
	budgets := map[string]float64{ // about a third more than is kept
		"ManagedClusterAddOn": 2048, "ManagedClusterAddOn in v1beta1": 2048, "ManagedCluster": 5120,
		"RoleBinding of an add-on": 896, "RoleBinding of somebody else": 512, "ManifestWork": 2048,
		"CertificateSigningRequest of a flood": 7168, "ManagedCluster of a flood": 1536,
	}
	kinds := trimmedKinds()
	maps.Copy(kinds, floodKinds())
	kinds["ManifestWork"] = trimmed{
		make: func(n int) client.Object { return someWork(fmt.Sprintf("cluster%d", n), fmt.Sprintf("addon%d", n%20)) },
		trim: func(t *hubprocess.Trims) func(any) (any, error) { return works.Trim(&t.Shared) },
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		var shared hubprocess.Trims
		whole := heapOf(t, 1000, kinds[name], func(in any) (any, error) { return in, nil })
		kept := heapOf(t, 1000, kinds[name], kinds[name].trim(&shared))
		t.Logf("%-32s %6.0f bytes as decoded, %6.0f kept", name, whole, kept)
		assert.Less(t, kept, budgets[name], name)
		assert.Less(t, kept, whole, name)
	}
}
