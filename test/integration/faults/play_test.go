package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/test/suite"
)

// apply applies documents on a control plane.
func apply(t *testing.T, p *suite.Plane, documents string) {
	t.Helper()
	require.NoError(t, p.Apply(t.Context(), []byte(documents)))
}

// patch merges into an object.
func patch(t *testing.T, p *suite.Plane, o client.Object, raw string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return p.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(raw)))
	})
}

// member is a ManagedCluster by its name.
func member(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// accepted creates a cluster that the hub accepts.
func accepted(t *testing.T, name string) {
	t.Helper()
	c := member(name)
	c.Spec.HubAcceptsClient = true
	require.NoError(t, world.hub.Client.Create(t.Context(), c))
}

// joined creates a cluster and plays its agent until it is available.
func joined(t *testing.T, name string) {
	t.Helper()
	accepted(t, name)
	joins(t, name)
}

// joins plays the agent of a cluster that joins.
func joins(t *testing.T, name string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return world.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: lease.ClusterLease}, &coordinationv1.Lease{})
	})
	reports(t, name, clusterv1.ManagedClusterConditionJoined, "True", "ManagedClusterJoined", "Managed cluster joined")
	available(t, name)
}

// available plays the agent of a cluster that is available.
func available(t *testing.T, name string) {
	t.Helper()
	reports(t, name, clusterv1.ManagedClusterConditionAvailable, "True", "ManagedClusterAvailable", "Managed cluster is available")
}

// reports writes a condition of a cluster as its agent does.
func reports(t *testing.T, name, kind, status, reason, text string) {
	t.Helper()
	suite.Eventually(t, func() error {
		c := member(name)
		if err := world.hub.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: text,
		})
		return world.hub.Client.Status().Update(t.Context(), c)
	})
}

// beats renews the Lease of a cluster with a clock that is some time ahead.
func beats(t *testing.T, name string, ahead time.Duration) {
	t.Helper()
	suite.Eventually(t, func() error {
		var l coordinationv1.Lease
		if err := world.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: lease.ClusterLease}, &l); err != nil {
			return err
		}
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(ahead)}
		return world.hub.Client.Update(t.Context(), &l)
	})
}

// asks makes a certificate request as the agent of a cluster does, of a signer.
func asks(t *testing.T, name, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	of := csr.ForCluster(name, "agent")
	of.Signer = signer
	r, err := of.Build(key)
	require.NoError(t, err)
	r.GenerateName, r.Name = "", name
	require.NoError(t, world.hub.Client.Create(t.Context(), r))
	return r
}

// decides approves or denies a request as a person does.
func decides(t *testing.T, name string, kind certificatesv1.RequestConditionType) {
	t.Helper()
	suite.Eventually(t, func() error {
		var r certificatesv1.CertificateSigningRequest
		if err := world.hub.Client.Get(t.Context(), client.ObjectKey{Name: name}, &r); err != nil {
			return err
		}
		return suite.Decide(t.Context(), world.hub, &r, kind)
	})
}

// template is an AddOnTemplate of the name with a ClusterManagementAddOn that has it; manifests and registration are
// lists in YAML.
func template(name, manifests, registration string) string {
	return fmt.Sprintf(`
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: %[1]s}
spec:
  addonName: %[1]s
  agentSpec: {workload: {manifests: [%[2]s]}}
  registration: [%[3]s]
`, name, manifests, registration)
}

// definition is a ClusterManagementAddOn with a template of its name; further are more fields of its spec.
func definition(name, further string) string {
	return fmt.Sprintf(`
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: %[1]s}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: %[1]s}}
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs}
%[2]s
`, name, further)
}

// settings is a manifest of a ConfigMap of the name.
func settings(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}}`, name)
}

// deployment is the manifest of a Deployment of the name, in a namespace.
func deployment(name, namespace string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: %[2]s}, spec: {
    selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {
    containers: [{name: main, image: "registry.example.com/main:v1"}]}}}}`, name, namespace)
}

// installOn installs an add-on on a cluster.
func installOn(t *testing.T, cluster, name string, annotations map[string]string, configs ...addonv1beta1.AddOnConfig) {
	t.Helper()
	a := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Annotations: annotations},
	}
	a.Spec.Configs = configs
	suite.Eventually(t, func() error { return world.hub.AddOns.CreateAddOn(t.Context(), a) })
}

// simple installs an add-on on the cluster with an agent, with manifests.
func simple(t *testing.T, name string, manifests ...string) {
	t.Helper()
	apply(t, world.hub, template(name, strings.Join(manifests, ", "), ""))
	apply(t, world.hub, definition(name, ""))
	installOn(t, near, name, nil)
}

// workOf creates a work of the name with manifests, for a cluster.
func workOf(t *testing.T, cluster, name, spec string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return world.hub.Apply(t.Context(), fmt.Appendf(nil, `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: %s, namespace: %s}
spec: %s
`, name, cluster, spec))
	})
}

// work is a ManifestWork by its name, on the cluster with an agent.
func work(name string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: near, Name: name}}
}

// workload is the spec of a work with manifests.
func workload(manifests ...string) string {
	return "{workload: {manifests: [" + strings.Join(manifests, ", ") + "]}}"
}

// pod waits for the pod of a workload of a name in a namespace, and plays its state.
func pod(t *testing.T, namespace, name string, change func(s *corev1.PodStatus)) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		if err := world.cluster.Client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; strings.HasPrefix(p.Name, name) {
				change(&p.Status)
				return world.cluster.Client.Status().Update(t.Context(), p)
			}
		}
		return fmt.Errorf("%s has no pod", name)
	})
}

// waits is a container that does not run.
func waits(reason, text string) func(s *corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase, s.Conditions = corev1.PodPending, nil
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "registry.example.com/main:v1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: text}},
		}}
	}
}

// runs is a pod that runs, and is ready or not.
func runs(ready bool) func(s *corev1.PodStatus) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return func(s *corev1.PodStatus) {
		now := metav1.NewTime(time.Now().Add(-time.Hour))
		s.Phase = corev1.PodRunning
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}}
		s.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, Reason: "ContainersNotReady", LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: status, LastTransitionTime: now},
		}
	}
}

// renews writes the Lease of an add-on in a namespace of the cluster, some time ago.
func renews(t *testing.T, namespace, name string, ago time.Duration) {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	suite.Eventually(t, func() error {
		err := world.cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(l), l)
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-ago)}
		if err != nil {
			return world.cluster.Client.Create(t.Context(), l)
		}
		return world.cluster.Client.Update(t.Context(), l)
	})
}

// remove deletes an object.
func remove(t *testing.T, p *suite.Plane, o client.Object) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(p.Client.Delete(t.Context(), o)))
}

// namespaceOn creates a namespace on the cluster.
func namespaceOn(t *testing.T, p *suite.Plane, name string) {
	t.Helper()
	require.NoError(t, p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// create creates an object on the hub.
func create(t *testing.T, o client.Object) {
	t.Helper()
	require.NoError(t, world.hub.Client.Create(t.Context(), o))
}

// accepts lets a cluster in, or denies it.
func accepts(t *testing.T, name string, yes bool) {
	t.Helper()
	patch(t, world.hub, member(name), fmt.Sprintf(`{"spec":{"hubAcceptsClient":%t}}`, yes))
}

// workIn is a ManifestWork of a cluster by its name.
func workIn(cluster, name string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
}

// addOn is a ManagedClusterAddOn on the cluster with an agent, by its name.
func addOn(name string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: near, Name: name}}
}

// unstructuredTemplate is an AddOnTemplate by its name.
func unstructuredTemplate(name string) *addonv1alpha1.AddOnTemplate {
	return &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// asAgent is the registration of the agent of an add-on.
func asAgent(cluster, name string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
			Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{
				User: csr.AddonUser(cluster, name, name), Groups: csr.AddonGroups(cluster, name),
			}},
		},
	}
}

// registersOn installs an add-on with a registration, which this hub does not define.
func registersOn(t *testing.T, cluster, name string, as addonv1beta1.RegistrationConfig) {
	t.Helper()
	installOn(t, cluster, name, nil)
	suite.Eventually(t, func() error {
		before, err := world.hub.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: cluster, Name: name})
		if err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Status.Registrations = []addonv1beta1.RegistrationConfig{as}
		_, err = world.hub.AddOns.PatchAddOnStatus(t.Context(), before, after)
		return err
	})
}

// requestOf waits for the certificate request of an add-on, and returns its name.
func requestOf(t *testing.T, name string) string {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	suite.Eventually(t, func() error {
		err := world.hub.Client.List(t.Context(), &list,
			client.MatchingLabels{names.LabelClusterName: near, names.LabelAddonName: name})
		if err == nil && len(list.Items) == 0 {
			return fmt.Errorf("add-on %s asks for nothing yet", name)
		}
		return err
	})
	return list.Items[0].Name
}

// format puts a name into documents.
func format(document, name string) string { return strings.ReplaceAll(document, "%[1]s", name) }

// keyOf is the key of an object.
func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

// createOn creates an object on a control plane.
func createOn(t *testing.T, p *suite.Plane, o client.Object) {
	t.Helper()
	require.NoError(t, p.Client.Create(t.Context(), o))
}
