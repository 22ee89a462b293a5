package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// apart makes a cluster whose objects are on a control plane of their own, and returns an administrator of that.
func apart(t *testing.T) (*env, client.Client) {
	t.Helper()
	e := newEnv(t)
	spoke := suite.Start(t, sandbox.Options{Name: "managed", Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
	e.settings.spoke = spoke.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	return e, spoke.Client
}

// hostingWork is a ManifestWork as a hub writes it to the hosting cluster for the add-on hello of another cluster.
func (e *env) hostingWork(name, managed string, manifests ...any) *workv1.ManifestWork {
	e.Helper()
	w := e.addonWork(name, nil, manifests...)
	w.Labels[addonv1alpha1.AddonNamespaceLabelKey] = managed
	return w
}

// onHost marks a manifest, given as YAML text of one line, as one for the hosting cluster.
func onHost(manifest string) string {
	return strings.Replace(manifest, "metadata: {",
		"metadata: {annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}, ", 1)
}

// hostedDeployment is the agent of a hosted add-on.
func hostedDeployment(namespace, name string) string {
	return onHost(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[2]s, namespace: %[1]s},
		spec: {selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}},
		spec: {containers: [{name: c, image: i, volumeMounts: [{name: hub, mountPath: /hub}]}],
		volumes: [{name: hub, secret: {secretName: hello-hub-kubeconfig}}]}}}}`, namespace, name))
}

// hostingHello holds what the hosting cluster is to have of the add-on hello of a managed cluster: its agent in a
// namespace, and a ConfigMap that is to stay.
func (e *env) hostingHello(managed, space string) *workv1.ManifestWork {
	e.Helper()
	kept := e.configMap("kept", nil)
	kept.Annotations = map[string]string{
		addonv1alpha1.DeletionOrphanAnnotationKey:         "",
		addonv1alpha1.HostedManifestLocationAnnotationKey: addonv1alpha1.HostedManifestLocationHostingValue,
	}
	w := orphaning(configured(e.hostingWork("addon-hello-deploy-hosting-"+managed+"-0", managed,
		onHost(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", space)),
		onHost(fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: hello, namespace: %s}}", space)),
		hostedDeployment(space, "hello"), kept)), e.cluster, "kept")
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "apps", Resource: "deployments", Namespace: space, Name: "hello",
		},
		FeedbackRules: []workv1.FeedbackRule{wellKnownStatus()},
	}}
	return w
}

// TestHostedAddOn plays the hub of an add-on in hosted mode, from its installation to its removal: its agent is on the
// hosting cluster, what it manages on the managed cluster; the hook of the hosting cluster runs first, then what the
// hosting cluster has goes, then the add-on and what the managed cluster has.
// Shows: work/hosted
func TestHostedAddOn(t *testing.T) {
	t.Parallel()
	host := newEnv(t)
	managed, spoke := apart(t)
	atHost, atManaged := host.start(), managed.start()
	addon := managed.addOn(addonv1alpha1.AddonHostingManifestFinalizer, addonv1alpha1.AddonHostingPreDeleteHookFinalizer)
	space := managed.cluster + "-hosted"
	there := "hello-" + managed.cluster

	hosting := host.hostingHello(managed.cluster, space)
	deploy := configured(managed.addonWork("addon-hello-deploy-0", addon,
		fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", there),
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: hello, namespace: %s},
			rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`, there)))
	// As a hub that renders the add-on once has it: each work has the configurations of all of its objects.
	deploy.Spec.ManifestConfigs = hosting.Spec.ManifestConfigs
	host.create(hosting)
	managed.create(deploy)
	host.settled(hosting)
	managed.settled(deploy)
	host.reports(hosting, 2, "Replicas=1")

	onSpoke := func(o client.Object, namespace, name string) bool {
		return spoke.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o) == nil
	}
	assert.True(t, host.get(&appsv1.Deployment{}, space, "hello"))
	assert.False(t, onSpoke(&corev1.Namespace{}, "", space), "the managed cluster has nothing of the hosting one")
	assert.True(t, onSpoke(&rbacv1.Role{}, there, "hello"))
	assert.False(t, host.get(&corev1.Namespace{}, "", there), "nor the other way round")
	assert.Empty(t, hosting.OwnerReferences)
	require.Len(t, managed.now(deploy).OwnerReferences, 1)

	// The credentials come to the namespace from elsewhere, and the work agent has no part in them.
	for _, name := range []string{"hello-hub-kubeconfig", "hello-managed-kubeconfig"} {
		host.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Data: map[string][]byte{"kubeconfig": []byte("x")},
		})
	}
	n, _ := host.quiet(atHost)
	host.edit(hosting, func(w *workv1.ManifestWork) {
		w.Annotations[workv1.ManifestConfigSpecHashAnnotationKey] = "{}"
	})
	host.quiet(atHost)
	assert.Empty(t, atHost.spoke.since(n), "neither Secrets nor annotations of the work are its affair")
	var secret corev1.Secret
	require.True(t, host.get(&secret, space, "hello-hub-kubeconfig"))
	assert.Empty(t, secret.OwnerReferences)

	host.removeHosted(managed, hosting, space)
	managed.quiet(atManaged)
	assert.True(t, onSpoke(&rbacv1.Role{}, there, "hello"), "what is managed goes last")
	managed.letAddOnGo(addon, deploy)
	assert.False(t, onSpoke(&corev1.Namespace{}, "", there))
	assert.False(t, onSpoke(&workv1.AppliedManifestWork{}, "", managed.settings.hubHash+"-"+deploy.Name))
	assert.Empty(t, host.ownersOf("kept"))
}

// removeHosted removes what the hosting cluster has of an add-on: its hook runs, and when that is done the hub deletes
// first its work and then the one that deployed the add-on.
func (e *env) removeHosted(managed *env, hosting *workv1.ManifestWork, space string) {
	e.Helper()
	addon := managed.unstructuredOf("{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn, "+
		"metadata: {name: hello, namespace: %s}}", managed.cluster)
	require.NoError(e, e.Delete(e.Context(), addon))
	hook := e.hostingWork("addon-hello-pre-delete-hosting-"+managed.cluster, managed.cluster,
		strings.Replace(hookJob(space, "goodbye"), "annotations: {",
			"annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting, ", 1))
	hook.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "batch", Resource: "jobs", Namespace: space, Name: "goodbye",
		},
		FeedbackRules: []workv1.FeedbackRule{wellKnownStatus()},
	}}
	e.create(hook)
	e.settled(hook)
	assert.False(e, hookDone(hook))
	inSpace := *e
	inSpace.cluster = space
	inSpace.endPods("goodbye", 1, corev1.PodSucceeded)
	e.reports(hook, 0, `JobComplete="True"`, "JobSucceeded=1")
	assert.True(e, hookDone(hook))
	assert.True(e, e.get(&appsv1.Deployment{}, space, "hello"), "the add-on runs until its hook is done")

	require.NoError(e, e.Delete(e.Context(), hook))
	e.gone(hook.Name)
	assert.False(e, e.get(&batchv1.Job{}, space, "goodbye"))
	assert.True(e, e.get(&appsv1.Deployment{}, space, "hello"))
	require.NoError(e, e.Delete(e.Context(), hosting))
	e.gone(hosting.Name)
	assert.False(e, e.get(&appsv1.Deployment{}, space, "hello"))
	assert.False(e, e.get(&corev1.Secret{}, space, "hello-hub-kubeconfig"), "the credentials go with their namespace")
	assert.False(e, e.get(&corev1.Namespace{}, "", space))
}

// TestHostedAddOnsShareANamespace hosts the same add-on for two clusters in one namespace, which both works bring
// along. The one that goes takes only what is its own; the namespace, and the credential of the other in it, stay until
// the last one goes.
func TestHostedAddOnsShareANamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	space := e.cluster + "-hosted"
	hosting := func(managed string) *workv1.ManifestWork {
		w := configured(e.hostingWork("addon-hello-deploy-hosting-"+managed+"-0", managed,
			onHost(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", space)),
			hostedDeployment(space, "hello-"+managed)))
		e.create(w)
		e.settled(w)
		return w
	}
	one, two := hosting("one"), hosting("two")
	var namespace corev1.Namespace
	require.True(t, e.get(&namespace, "", space))
	assert.Len(t, namespace.OwnerReferences, 2)
	e.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "two-hub-kubeconfig"}})
	e.quiet(a)

	require.NoError(t, e.Delete(t.Context(), one))
	e.gone(one.Name)
	assert.False(t, e.get(&appsv1.Deployment{}, space, "hello-one"))
	e.quiet(a)
	assert.True(t, e.get(&appsv1.Deployment{}, space, "hello-two"))
	assert.True(t, e.get(&corev1.Secret{}, space, "two-hub-kubeconfig"))
	require.True(t, e.get(&namespace, "", space))
	assert.Len(t, namespace.OwnerReferences, 1)
	assert.Nil(t, namespace.DeletionTimestamp)

	require.NoError(t, e.Delete(t.Context(), two))
	e.gone(two.Name)
	assert.False(t, e.get(&namespace, "", space))
}
