package migration_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestAHubMovesFromOCMAndBack runs the page from top to bottom. Its steps build on each other.
func TestAHubMovesFromOCMAndBack(t *testing.T) {
	startPlane(t)
	leaveAsOCM(t)
	commands := readPage(t)
	s := &shell{t: t}
	before := identities(t)

	s.do(commands, "Move the hub in / 1. Stop OCM's hub")
	s.do(commands, "Move the hub in / 2. Take back what only OCM needs")
	s.do(commands, "Move the hub in / 3. Start ours")
	running := true
	t.Cleanup(func() {
		if running && s.stop != nil {
			s.stop()
		}
	})
	settled(t)
	suite.Eventually(t, func() error {
		return converts(t, "managedclusteraddons.addon.open-cluster-management.io", s.config.WebhookURL)
	})
	s.do(commands, "Move the hub in / 4. Stop the conversion webhook of OCM")

	t.Run("nothing is made again and nothing is lost", func(t *testing.T) {
		assert.Equal(t, before, identities(t))
	})
	t.Run("a placement without a binding installs nothing", loneliness)
	t.Run("what OCM installed for a placement leaves with it", leaveWithPlacement)
	t.Run("a pre-delete hook runs before its add-on goes", hook)
	t.Run("the finalizer of another add-on manager stays, and the add-on says so", foreign)
	t.Run("a cluster can be deleted", func(t *testing.T) { deleteCluster(t, "c1") })

	s.stop()
	running = false
	t.Run("while the policies stand, OCM's add-on manager is kept out", keptOut)
	t.Run("though nobody waits for our webhook", func(t *testing.T) { createWork(t, plane.Client, "c3", "unchecked") })

	out := commands["Move the hub out / 1. Remove ours"]
	s.do(commands, "Move the hub out / 1. Remove ours")
	t.Run("the way back is to start ours again", func(*testing.T) { s.again(commands, out) })
	s.do(commands, "Move the hub out / 2. Start OCM's")
	assert.Empty(t, commands, "every command of the page was run")
	t.Run("nothing of ours is left that could block", nothingBlocks)
	t.Run("OCM's programs do their work", ocmWorks)
	t.Run("all can be deleted by those who know OCM's finalizers only", deleteAll)
}

// identities are the UIDs of all that must stay, and the generations of works.
func identities(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"cluster": &clusterv1.ManagedClusterList{}, "add-on": &addonv1alpha1.ManagedClusterAddOnList{},
		"work": &workv1.ManifestWorkList{}, "page": &clusterv1beta1.PlacementDecisionList{},
	} {
		require.NoError(t, plane.Client.List(t.Context(), list))
		require.NoError(t, meta.EachListItem(list, func(o runtimeObject) error {
			a, err := meta.Accessor(o)
			if err != nil || a.GetNamespace() == "lonely" {
				return err
			}
			key := kind + " " + a.GetNamespace() + "/" + a.GetName()
			found[key] = string(a.GetUID())
			if kind == "work" {
				found[key] += " " + string(rune('0'+a.GetGeneration()))
			}
			return nil
		}))
	}
	for _, cluster := range []string{"c1", "c2", "c3"} {
		for _, o := range []client.Object{
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:managedcluster:" + cluster}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: "open-cluster-management:managedcluster:" + cluster + ":work",
			}},
		} {
			require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
			found["access "+o.GetNamespace()+"/"+o.GetName()] = string(o.GetUID())
		}
	}
	return found
}

// settled waits until our hub manager has looked after all that OCM left.
func settled(t *testing.T) {
	t.Helper()
	for _, cluster := range []string{"c1", "c2"} {
		suite.Eventually(t, func() error {
			addOn, err := getAddOn(t, cluster, "hello")
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(addOn.Status.Conditions, "Progressing")
			switch {
			case c == nil || c.Reason != "Completed":
				return notYet("Progressing is %v", c)
			case addOn.Labels[names.LabelInstalledBy] != names.InstalledByPlacement:
				return notYet("labels are %v", addOn.Labels)
			}
			return nil
		})
	}
	suite.Eventually(t, func() error {
		var page clusterv1beta1.PlacementDecision
		key := client.ObjectKey{Namespace: "apps", Name: "hello-decision-1"}
		if err := plane.Client.Get(t.Context(), key, &page); err != nil {
			return err
		}
		if page.Annotations[names.AnnotationSetBindings] != names.SetBindingsHonoured {
			return notYet("annotations are %v", page.Annotations)
		}
		return nil
	})
	byHand, err := getAddOn(t, "c3", "hello")
	require.NoError(t, err)
	assert.NotContains(t, byHand.Labels, names.LabelInstalledBy, "a person made it")
}

// converts reports whether the definition has add-ons converted at an address.
func converts(t *testing.T, name, url string) error {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &definition); err != nil {
		return err
	}
	c := definition.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig.URL == nil || *c.Webhook.ClientConfig.URL != url {
		return notYet("%s is converted by %v", name, c)
	}
	return nil
}

func getAddOn(t *testing.T, cluster, name string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	t.Helper()
	var addOn addonv1alpha1.ManagedClusterAddOn
	err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: name}, &addOn)
	return &addOn, err
}

// loneliness looks at the placement in a namespace to which no set is bound.
func loneliness(t *testing.T) {
	suite.Eventually(t, func() error {
		var placement clusterv1beta1.Placement
		key := client.ObjectKey{Namespace: "lonely", Name: "everywhere"}
		if err := plane.Client.Get(t.Context(), key, &placement); err != nil {
			return err
		}
		c := meta.FindStatusCondition(placement.Status.Conditions, "PlacementSatisfied")
		if c == nil || c.Reason != "NoManagedClusterSetBindings" || !strings.Contains(c.Message, "namespace lonely") {
			return notYet("%v", c)
		}
		return nil
	})
	suite.Consistently(t, 2*time.Second, func() error {
		var all addonv1alpha1.ManagedClusterAddOnList
		if err := plane.Client.List(t.Context(), &all); err != nil {
			return err
		}
		if slices.ContainsFunc(all.Items, func(a addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == "everywhere" }) {
			return errors.New("everywhere is installed")
		}
		return nil
	})
}

// leaveWithPlacement takes c1 out of the placement of hello, whose add-on has OCM's finalizer and no hook.
func leaveWithPlacement(t *testing.T) {
	addOn, err := getAddOn(t, "c1", "hello")
	require.NoError(t, err)
	patch(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, `{"metadata":{"labels":{"hello":"no"}}}`)
	gone(t, addOn)
	told(t, addOn, "FinalizersRemoved", "has no pre-delete hook")
	suite.Eventually(t, func() error {
		var work workv1.ManifestWork
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: "addon-hello-deploy-0"}, &work)
		if err == nil && work.DeletionTimestamp == nil {
			return notYet("it is not")
		}
		return client.IgnoreNotFound(err)
	})
}

// hook deletes an add-on whose template has a pre-delete hook, and plays the agent that runs it.
func hook(t *testing.T) {
	addOn, err := getAddOn(t, "c2", "hooked")
	require.NoError(t, err)
	require.NoError(t, plane.Client.Delete(t.Context(), addOn))
	var work workv1.ManifestWork
	suite.Eventually(t, func() error {
		return plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "c2", Name: "addon-hooked-pre-delete"}, &work)
	})
	suite.Eventually(t, func() error {
		have, err := getAddOn(t, "c2", "hooked")
		if err != nil {
			return err
		}
		for _, kind := range []string{"HookManifestCompleted", "addon.spokelet.io/Deleting"} {
			if !meta.IsStatusConditionFalse(have.Status.Conditions, kind) {
				return notYet("%s: %v", kind, have.Status.Conditions)
			}
		}
		return nil
	})
	deployed := client.ObjectKey{Namespace: "c2", Name: "addon-hooked-deploy-0"}
	var rest workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), deployed, &rest))
	assert.Nil(t, rest.DeletionTimestamp, "what the hook may need is still there")

	yes := "True"
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1.WorkAvailable, Status: metav1.ConditionTrue, Reason: "ByAgent", LastTransitionTime: metav1.Now(),
	}}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{
			Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "default", Name: "clean",
		},
		Conditions: []metav1.Condition{},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{
			Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: &yes},
		}}},
	}}
	require.NoError(t, plane.Client.Status().Update(t.Context(), &work))
	gone(t, addOn)
	told(t, addOn, "FinalizersRemoved", "The pre-delete hook is complete")
}

// foreign deletes an add-on with a manager of its author's, which does not run.
func foreign(t *testing.T) {
	addOn, err := getAddOn(t, "c2", "framework")
	require.NoError(t, err)
	require.NoError(t, plane.Client.Delete(t.Context(), addOn))
	suite.Eventually(t, func() error {
		have, err := getAddOn(t, "c2", "framework")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(have.Status.Conditions, "addon.spokelet.io/Deleting")
		if c == nil || !strings.Contains(c.Message, "the add-on manager that its author runs") {
			return notYet("%v", have.Status.Conditions)
		}
		return nil
	})
	have, err := getAddOn(t, "c2", "framework")
	require.NoError(t, err)
	assert.Equal(t, []string{hostedCleanup}, have.Finalizers)
}

// deleteCluster deletes a cluster with OCM's finalizers, and plays its agent.
func deleteCluster(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	suite.Eventually(t, func() error {
		releaseWorks(t, name)
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return notYet("%v: %v", err, cluster.Status.Conditions)
	})
	err := plane.Client.Get(t.Context(), client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name},
		&rbacv1.ClusterRole{})
	assert.True(t, apierrors.IsNotFound(err), "its access goes with it: %v", err)
}

// releaseWorks takes the finalizers of agents off works that are being deleted.
func releaseWorks(t *testing.T, cluster string) {
	t.Helper()
	var list workv1.ManifestWorkList
	require.NoError(t, plane.Client.List(t.Context(), &list, client.InNamespace(cluster)))
	for i := range list.Items {
		if work := &list.Items[i]; work.DeletionTimestamp != nil && len(work.Finalizers) > 0 {
			assert.Equal(t, []string{workCleanup}, work.Finalizers)
			patch(t, work, `{"metadata":{"finalizers":null}}`)
		}
	}
}

// keptOut shows why it is not enough to end our hub manager.
func keptOut(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c3", Name: "of-ocm"}}
	work.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
	grant(t)
	err := as(t, "addon-manager-controller-sa", "addon").Create(t.Context(), work)
	require.ErrorContains(t, err, "hub-manager-addon-bindings.spokelet.io")
}

// grant gives OCM's add-on manager back what its operator would.
func grant(t *testing.T) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-addon-manager:controller"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace, Name: "addon-manager-controller-sa",
		}},
	}
	require.NoError(t, plane.Client.Create(t.Context(), binding))
	suite.Eventually(t, func() error {
		return as(t, "addon-manager-controller-sa", "addon").List(t.Context(), &workv1.ManifestWorkList{})
	})
}

func createWork(t *testing.T, c client.Client, cluster, name string) {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	work.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
	require.NoError(t, c.Create(t.Context(), work))
}

func patch(t *testing.T, o client.Object, body string) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(plane.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body)))))
}

// gone waits until an object does not exist.
func gone(t *testing.T, o client.Object) {
	t.Helper()
	have, isObject := o.DeepCopyObject().(client.Object)
	require.True(t, isObject)
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), have)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return notYet("%v %v", have, err)
	})
}

// told waits for an Event about an object.
func told(t *testing.T, o client.Object, reason, note string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := plane.Client.List(t.Context(), &list, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		if slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == o.GetUID() && e.Reason == reason && strings.Contains(e.Note, note)
		}) {
			return nil
		}
		return notYet("there is none")
	})
}
