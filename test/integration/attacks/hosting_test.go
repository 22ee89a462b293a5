package attacks_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/hosting.yaml
var hostingFile []byte

const mirrorsOfEvil = `{"registries":[{"source":"registry.example.com/team","mirror":"attacker.example/evil"}]}`

// lawless is a hub without admission policies, on which only the decisions of the hub manager count.
type lawless struct {
	*suite.Plane
	// admin is the administrator of the namespace of cluster evil.
	admin client.Client
}

// lawlessHub starts one with accepted clusters.
func lawlessHub(t *testing.T, clusters ...string) lawless {
	t.Helper()
	b := lawless{Plane: suite.Start(t, sandbox.Options{Name: "forgery-bare"}, manifests.CRDs(), manifests.Hub())}
	for _, all := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{},
	} {
		require.NoError(t, b.Client.DeleteAllOf(t.Context(), all))
	}
	suite.StartHub(t, b.Plane, func(c *hub.Config) { c.RequirePolicies = false })
	require.NoError(t, b.Apply(t.Context(), hostingFile))
	for _, cluster := range clusters {
		b.join(t, cluster)
	}
	b.admin = b.As(t, "admin-of-evil@example.com")
	require.NoError(t, b.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: in("evil", "admin"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test:of-one-cluster"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "admin-of-evil@example.com"}},
	}))
	return b
}

// join creates an accepted cluster and waits for its namespace.
func (b lawless) join(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", name), Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	require.NoError(t, b.Client.Create(t.Context(), cluster))
	suite.Eventually(t, func() error {
		var list rbacv1.RoleBindingList
		if err := b.Client.List(t.Context(), &list, client.InNamespace(name)); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("the agent of cluster %s has no rights yet: %w", name, err)
		}
		return nil
	})
}

// addOn reads an add-on.
func (b lawless) addOn(ctx context.Context, namespace, name string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	return addOn, b.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, addOn)
}

// says waits until a condition of an add-on has a reason.
func (b lawless) says(t *testing.T, namespace, name, kind, reason string) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	suite.Eventually(t, func() error {
		addOn, err := b.addOn(t.Context(), namespace, name)
		if found = meta.FindStatusCondition(addOn.Status.Conditions, kind); err != nil || found == nil || found.Reason != reason {
			return fmt.Errorf("condition %s of add-on %s/%s is %v instead of %s: %w", kind, namespace, name, found, reason, err)
		}
		return nil
	})
	return found
}

// work waits for a work.
func (b lawless) work(t *testing.T, namespace, name string) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{}
	suite.Eventually(t, func() error {
		return b.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, work)
	})
	return work
}

// assertNothingOn checks that a cluster has no work of an add-on of another.
func (b lawless) assertNothingOn(t *testing.T, cluster string) {
	t.Helper()
	var list workv1.ManifestWorkList
	require.NoError(t, b.Client.List(t.Context(), &list, client.InNamespace(cluster), client.HasLabels{labelAddOnCluster}))
	assert.Empty(t, list.Items)
}

// imageIn returns the image of the Deployment in a work.
func imageIn(t *testing.T, work *workv1.ManifestWork) string {
	t.Helper()
	for _, m := range work.Spec.Workload.Manifests {
		var deployment appsv1.Deployment
		if err := json.Unmarshal(m.Raw, &deployment); err == nil && deployment.Kind == "Deployment" {
			return deployment.Spec.Template.Spec.Containers[0].Image
		}
	}
	require.Fail(t, "there is no Deployment in work "+work.Name)
	return ""
}

// Shows: security/annotations-reach-no-cluster
func TestAnAnnotationDeploysToNoOtherClusterWithoutItsConsent(t *testing.T) {
	b := lawlessHub(t, "victim", "evil")
	t.Run("the agent of a cluster annotates its ManagedCluster", func(t *testing.T) {
		agent := b.As(t, csr.ClusterUser("evil", agentName), csr.ClusterGroup("evil"))
		suite.Eventually(t, func() error { // The hub manager writes the cluster, too.
			var own clusterv1.ManagedCluster
			if err := agent.Get(t.Context(), client.ObjectKey{Name: "evil"}, &own); err != nil {
				return err
			}
			own.Annotations = map[string]string{annotationHost: "victim", annotationMirrors: mirrorsOfEvil, annotationValues: "{}"}
			return agent.Update(t.Context(), &own)
		})
		suite.Eventually(t, func() error { // The installer has seen it.
			addOn, err := b.addOn(t.Context(), "evil", "hostme")
			if err == nil && addOn.Annotations[annotationValues] == "" {
				err = errors.New("the values are not copied yet")
			}
			return err
		})
		suite.Eventually(t, func() error { // On its own cluster, when the work is rendered again.
			image := imageIn(t, b.work(t, "evil", "addon-hostme-deploy-0"))
			if image != "attacker.example/evil/agent:v1" {
				return fmt.Errorf("the image is %s", image)
			}
			return nil
		})
		addOn, err := b.addOn(t.Context(), "evil", "hostme")
		require.NoError(t, err)
		assert.NotContains(t, addOn.Annotations, annotationHost)
		b.assertNothingOn(t, "victim")
	})
	t.Run("the administrator of its namespace annotates an add-on", func(t *testing.T) {
		require.NoError(t, change(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("evil", "hostme")},
			`{"metadata":{"annotations":{"`+annotationHost+`":"victim"}}}`)(t.Context(), b.admin))
		refused := b.says(t, "evil", "hostme", "HostingClusterValidity", "NotConsented")
		assert.Contains(t, refused.Message, "kubectl annotate managedcluster victim --overwrite "+annotationHosts+"=evil")
		b.assertNothingOn(t, "victim")
	})
	t.Run("a host that consents runs what the hub says", func(t *testing.T) {
		victim := &clusterv1.ManagedCluster{ObjectMeta: in("", "victim")}
		require.NoError(t, change(victim, `{"metadata":{"annotations":{"`+annotationHosts+`":"evil"}}}`)(t.Context(), b.Client))
		b.says(t, "evil", "hostme", "HostingClusterValidity", "HostingClusterValid")
		work := b.work(t, "victim", "addon-hostme-deploy-hosting-evil-0")
		assert.Equal(t, "registry.example.com/team/agent:v1", imageIn(t, work), "the mirrors of evil are for evil")

		require.NoError(t, change(victim, `{"metadata":{"annotations":{"`+annotationHosts+`":""}}}`)(t.Context(), b.Client))
		b.says(t, "evil", "hostme", "HostingClusterValidity", "NotConsented")
		b.work(t, "victim", work.Name)
	})
}

// Shows: security/not-accepted-gets-nothing
func TestAClusterThatNobodyAcceptedGetsNothing(t *testing.T) {
	b := lawlessHub(t, "evil")
	require.NoError(t, b.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "stranger", Labels: map[string]string{names.LabelClusterName: "stranger"},
	}}))
	bootstrapper := b.Account(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	require.NoError(t, bootstrapper.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger", Annotations: map[string]string{annotationHost: "evil", annotationMirrors: mirrorsOfEvil}},
	}))
	b.join(t, "later")
	b.work(t, "later", "addon-hostme-deploy-0") // What came before it was looked at.
	var decisions clusterv1beta1.PlacementDecisionList
	require.NoError(t, b.Client.List(t.Context(), &decisions, client.InNamespace("placements")))
	for _, page := range decisions.Items {
		for _, decision := range page.Status.Decisions {
			assert.NotEqual(t, "stranger", decision.ClusterName)
		}
	}
	_, err := b.addOn(t.Context(), "stranger", "hostme")
	assert.True(t, apierrors.IsNotFound(err), "the answer is %v", err)

	// Not where a person creates the add-on either, and not on a host that is not accepted.
	require.NoError(t, b.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("stranger", "hooked")}))
	denied := b.says(t, "stranger", "hooked", "ManifestApplied", "ManifestWorkApplyFailed")
	assert.Contains(t, denied.Message, "the hub does not accept cluster stranger")
	var works workv1.ManifestWorkList
	require.NoError(t, b.Client.List(t.Context(), &works, client.InNamespace("stranger")))
	assert.Empty(t, works.Items)

	// Once it is accepted, everything is as usual; denied again, it keeps what it has.
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", "stranger")}
	require.NoError(t, change(cluster, `{"spec":{"hubAcceptsClient":true}}`)(t.Context(), b.Client))
	b.work(t, "stranger", "addon-hooked-deploy-0")
	b.work(t, "stranger", "addon-hostme-deploy-0")
	require.NoError(t, change(cluster, `{"spec":{"hubAcceptsClient":false}}`)(t.Context(), b.Client))
	b.says(t, "stranger", "hostme", "ManifestApplied", "ManifestWorkApplyFailed")
	b.join(t, "last")
	b.work(t, "last", "addon-hostme-deploy-0")
	addOn, err := b.addOn(t.Context(), "stranger", "hostme")
	require.NoError(t, err)
	assert.Zero(t, addOn.DeletionTimestamp, "a denial uninstalls nothing")
	b.work(t, "stranger", "addon-hostme-deploy-0")
}

// forge creates a work that passes for the hook of an add-on on a hosting cluster, which its author reports to be complete.
func (b lawless) forge(t *testing.T, addOn, cluster string, uid string) *workv1.ManifestWork {
	t.Helper()
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"clean","namespace":"default"}}`
	work := &workv1.ManifestWork{ObjectMeta: in("evil", "addon-"+addOn+"-pre-delete-hosting-"+cluster)}
	work.Labels = map[string]string{labelAddOn: addOn, labelAddOnCluster: cluster}
	work.Annotations = map[string]string{"addon.spokelet.io/addon-uid": uid}
	work.Finalizers = []string{"evil.example.com/stay"}
	work.Spec.Workload.Manifests = []workv1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = []byte(job)
	require.NoError(t, b.admin.Create(t.Context(), work))
	complete(t, b.admin, work)
	return work
}

// complete reports that the Job of a hook is complete.
func complete(t *testing.T, c client.Client, work *workv1.ManifestWork) {
	t.Helper()
	before, yes := work.DeepCopy(), "True"
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1.WorkAvailable, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: work.Generation,
	})
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "default", Name: "clean"},
		Conditions:   []metav1.Condition{},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{
			Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: &yes},
		}}},
	}}
	require.NoError(t, c.Status().Patch(t.Context(), work, client.MergeFrom(before)))
}

// Shows: security/forged-hosted-works
func TestAForgedWorkOfHostedModeCountsForNothing(t *testing.T) {
	b := lawlessHub(t, "evil", "host", "cluster1", "cluster2")
	require.NoError(t, change(&clusterv1.ManagedCluster{ObjectMeta: in("", "host")},
		`{"metadata":{"annotations":{"`+annotationHosts+`":"*"}}}`)(t.Context(), b.Client))
	gone := func(cluster string) {
		suite.Eventually(t, func() error {
			if addOn, err := b.addOn(t.Context(), cluster, "hooked"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the add-on is there: %v, %w", addOn.Status.Conditions, err)
			}
			return nil
		})
	}
	t.Run("it does not stop the deletion of an add-on that is not hosted, nor of its cluster", func(t *testing.T) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hooked")}
		require.NoError(t, b.Client.Create(t.Context(), addOn))
		b.work(t, "cluster1", "addon-hooked-deploy-0")
		forged := b.forge(t, "hooked", "cluster1", string(addOn.UID))
		require.NoError(t, b.admin.Delete(t.Context(), forged)) // It stays, with its finalizer.
		require.NoError(t, b.Client.Delete(t.Context(), addOn))
		complete(t, b.Client, b.work(t, "cluster1", "addon-hooked-pre-delete"))
		gone("cluster1")
		cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster1")}
		require.NoError(t, b.Client.Delete(t.Context(), cluster))
		suite.Eventually(t, func() error {
			if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
				return fmt.Errorf("cluster1 is there: %v, %w", cluster.Status.Conditions, err)
			}
			return nil
		})
	})
	t.Run("it is not the result of a hook", func(t *testing.T) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: withAnnotation(in("cluster2", "hooked"), annotationHost, "host")}
		require.NoError(t, b.Client.Create(t.Context(), addOn))
		b.work(t, "host", "addon-hooked-deploy-hosting-cluster2-0")
		suite.Eventually(t, func() error {
			now, err := b.addOn(t.Context(), "cluster2", "hooked")
			if len(now.Finalizers) == 0 {
				return fmt.Errorf("the hook is not guarded yet: %w", err)
			}
			return err
		})
		b.forge(t, "hooked", "cluster2", string(addOn.UID))
		require.NoError(t, b.Client.Delete(t.Context(), addOn))
		hook := b.work(t, "host", "addon-hooked-pre-delete-hosting-cluster2")
		b.says(t, "cluster2", "hooked", "addon.spokelet.io/Deleting", "WaitingForHook")
		complete(t, b.Client, hook)
		gone("cluster2")
	})
}
