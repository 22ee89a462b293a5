package undecodable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox/persona"
	"github.com/spokelet/spokelet/test/suite"
)

// taken is a value that an API server took and Go does not.
type taken struct {
	value
	object *unstructured.Unstructured
}

// tryAll writes every strange value into an object of its own, and returns what the API server took and Go does not.
// Those objects stay.
func tryAll(t *testing.T, plane *suite.Plane, prefix string) []taken {
	t.Helper()
	var harmful []taken
	tried := 0
	for _, base := range bases(t) {
		kind := strings.ToLower(base.GetKind())
		fresh := func() *unstructured.Unstructured {
			o := base.DeepCopy()
			o.SetName(suite.UniqueName(prefix + "-" + kind))
			if base.GetKind() == "ManagedClusterSetBinding" { // A policy wants it to have the name of its set.
				require.NoError(t, unstructured.SetNestedField(o.Object, o.GetName(), "spec", "clusterSet"))
			}
			return o
		}
		var scratch *unstructured.Unstructured
		for _, v := range valuesOf(t, typeOf(t, base), base.Object, nil) {
			tried++
			o := fresh()
			if v.path[0] == "spec" {
				v.put(o.Object)
				unstructured.RemoveNestedField(o.Object, "status")
				if write(t, v, plane.Client.Create(t.Context(), o)) && undecodable(t, o) != nil {
					harmful = append(harmful, taken{v, o})
				}
				continue
			}
			if scratch == nil {
				scratch = o.DeepCopy()
				require.NoError(t, plane.Client.Create(t.Context(), scratch), "testdata/objects.yaml is valid")
			}
			patched := base.DeepCopy()
			v.put(patched.Object)
			o = scratch.DeepCopy()
			o.Object["status"] = patched.Object["status"]
			body, err := (&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "status": o.Object["status"],
			}}).MarshalJSON()
			require.NoError(t, err)
			err = plane.Client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, body))
			if write(t, v, err) && undecodable(t, o) != nil {
				harmful = append(harmful, taken{v, o})
				scratch = nil
			}
		}
	}
	t.Logf("%d values, of which %d were taken that Go does not decode", tried, len(harmful))
	return harmful
}

// write reports whether the API server took a value. Anything but a refusal of the value fails the test.
func write(t *testing.T, v value, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
	require.True(t, refused, "%s: %v", v, err)
	return false
}

// sentences are the fields of what was taken, each once.
func sentences(all []taken) []string {
	var fields []string
	for _, one := range all {
		fields = append(fields, one.object.GetKind()+" "+one.String())
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// Shows: security/undecodable-refused
func TestTheAPIServerRefusesWhatGoCannotDecode(t *testing.T) {
	assert.Empty(t, sentences(tryAll(t, ours, "ours")))
}

// attack is a request of a user for an object that nobody could decode.
type attack struct {
	as  client.Client
	try func(ctx context.Context, c client.Client) error
}

// raw returns an object from JSON-like values.
func raw(apiVersion, kind, space, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(space)
	u.SetName(name)
	return u
}

func patch(o client.Object, body string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

func patchStatus(o client.Object, body string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

// extendLease has an agent write the spec of its own cluster, which it may update and not patch.
func extendLease(ctx context.Context, c client.Client) error {
	own := raw("cluster.open-cluster-management.io/v1", "ManagedCluster", "", victim, nil)
	if err := c.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(own.Object, int64(99999999999), "spec", "leaseDurationSeconds"); err != nil {
		return err
	}
	return c.Update(ctx, own)
}

func create(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, o) }
}

// victim is an accepted cluster of a hub, with a work.
const victim = "victim"

// attacks are those of each role. tenant is a user who may write Placements in the namespace of the tests.
func attacks(t *testing.T, plane *suite.Plane) map[string]attack {
	t.Helper()
	const cluster, addon = "cluster.open-cluster-management.io/", "addon.open-cluster-management.io/"
	agent := plane.As(t, "system:open-cluster-management:"+victim+":agent1",
		"system:open-cluster-management:"+victim, "system:open-cluster-management:managed-clusters")
	// The answer is not decoded into Go types, which would fail after the API server took the value.
	own := raw(cluster+"v1", "ManagedCluster", "", victim, nil)
	work := raw("work.open-cluster-management.io/v1", "ManifestWork", victim, "work", nil)
	return map[string]attack{
		"a bootstrap credential creates a ManagedCluster": {
			plane.Account(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap),
			create(raw(cluster+"v1", "ManagedCluster", "", "bomb", map[string]any{"leaseDurationSeconds": int64(99999999999)})),
		},
		"an agent updates its own ManagedCluster": {agent, extendLease},
		"an agent writes an ordinal into the status of a work": {agent, patchStatus(work,
			`{"status":{"resourceStatus":{"manifests":[{"resourceMeta":{"ordinal":99999999999},"conditions":[]}]}}}`)},
		"an agent reports a capacity": {agent, patchStatus(own, `{"status":{"capacity":{"cpu":"1e1.5"}}}`)},
		"a tenant creates a Placement": {plane.As(t, tenant), create(raw(cluster+"v1beta1", "Placement", namespace, "bomb",
			map[string]any{"numberOfClusters": int64(99999999999)}))},
		"an author creates a ClusterManagementAddOn": {plane.As(t, persona.Author), create(raw(addon+"v1alpha1",
			"ClusterManagementAddOn", "", "bomb", map[string]any{"installStrategy": map[string]any{
				"type": "Placements", "placements": []any{map[string]any{
					"name": "a", "namespace": namespace, "rolloutStrategy": map[string]any{
						"type": "All", "all": map[string]any{"minSuccessTime": "abc"},
					},
				}},
			}}))},
	}
}

// tenant is a user who may write Placements in the namespace of the tests.
const tenant = "tenant@example.com"

const tenants = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: ` + namespace + `}
rules:
  - {apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [create, update, delete, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: ` + namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + tenant + `}]
`

// prepare creates the accepted cluster and its work, which a hub manager must run for.
func prepare(t *testing.T, plane *suite.Plane) {
	t.Helper()
	require.NoError(t, plane.Apply(t.Context(), []byte(tenants)))
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: victim}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	suite.Eventually(t, func() error { return accepted(t.Context(), plane, victim) })
	require.NoError(t, plane.Client.Create(t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: victim, Labels: map[string]string{names.LabelAddonName: "x"}},
	}))
}

// accepted returns why the hub manager has not accepted a cluster; nil when it has.
func accepted(ctx context.Context, plane *suite.Plane, name string) error {
	var cluster clusterv1.ManagedCluster
	if err := plane.Client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		return fmt.Errorf("cluster %s is not accepted: %v", name, cluster.Status.Conditions)
	}
	return nil
}

// Shows: security/undecodable-roles
func TestNoRoleCanWriteAnObjectThatNobodyCanDecode(t *testing.T) {
	suite.StartHub(t, ours)
	prepare(t, ours)
	for sentence, a := range attacks(t, ours) {
		t.Run(sentence, func(t *testing.T) {
			err := a.try(t.Context(), a.as)
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "-bounds.spokelet.io"),
				"the answer is %v", err)
		})
	}
}

// Shows: security/undecodable-goes-on
func TestAnObjectThatCannotBeDecodedCannotStopTheHubManager(t *testing.T) {
	config := suite.ConfigureHub(t, theirs)
	config.RequirePolicies = false
	config.HealthAddress = fmt.Sprintf("127.0.0.1:%d", suite.FreePort(t))
	config.AutoApprovedCSRUsers = []string{
		"system:serviceaccount:" + names.NamespaceBootstrap + ":" + names.ServiceAccountBootstrap,
	}
	manager := suite.RunHub(t, config)
	prepare(t, theirs)
	require.NoError(t, theirs.Apply(t.Context(), persona.Documents()))
	for sentence, a := range attacks(t, theirs) {
		require.NoError(t, a.try(t.Context(), a.as), "%s: the definitions of OCM take it", sentence)
	}
	worksFor(t, config, "while-it-runs")
	goesWithAnyTime(t, "while-it-runs")
	harmful := tryAll(t, theirs, "theirs")
	require.Greater(t, len(harmful), 20, "the test knows what OCM's definitions take")
	for _, field := range []string{
		"leaseDurationSeconds", "numberOfClusters", "ordinal", "minSuccessTime", "maxConcurrency", "lastTransitionTime", "capacity",
	} {
		assert.True(t, slices.ContainsFunc(sentences(harmful), func(s string) bool { return strings.Contains(s, field) }), field)
	}
	worksFor(t, config, "among-all-of-them")
	manager.Stop()
	manager = suite.RunHub(t, config)
	worksFor(t, config, "after-a-restart")
	removesNothing(t, harmful)
	said := readyz(t, config)
	assert.Contains(t, said, "[!]watches cannot decode ManagedCluster bomb: ")
	assert.Contains(t, said, "[+]watches ok")
	suite.Eventually(t, func() error {
		var events corev1.EventList
		err := theirs.Client.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault))
		if err != nil || slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "Undecodable" && e.InvolvedObject.Name == "bomb"
		}) {
			return err
		}
		return fmt.Errorf("no Event names the object among %d", len(events.Items))
	})
	repaired(t, config)
	manager.Stop()
	policiesRefuse(t)
}

// worksFor lets the agent of a new cluster join, whom the hub manager approves and accepts, and has a Placement select
// the cluster.
func worksFor(t *testing.T, config hub.Config, cluster string) {
	t.Helper()
	t.Logf("the hub manager works %s", cluster)
	space := theirs.Namespace(t, "agent")
	agent := suite.ConfigureAgent(t, theirs, theirs, cluster, space)
	running := suite.RunAgent(t, agent)
	suite.Eventually(t, func() error {
		var found clusterv1.ManagedCluster
		if err := theirs.Client.Get(t.Context(), client.ObjectKey{Name: cluster}, &found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return fmt.Errorf("%s: %v; %s", cluster, found.Status.Conditions, readyz(t, config))
		}
		return nil
	})
	running.Stop()
	placement := raw("cluster.open-cluster-management.io/v1beta1", "Placement", space, cluster, map[string]any{})
	require.NoError(t, theirs.Client.Create(t.Context(), placement))
	suite.Eventually(t, func() error {
		var found clusterv1beta1.Placement
		err := theirs.Client.Get(t.Context(), client.ObjectKeyFromObject(placement), &found)
		if err == nil && len(found.Status.Conditions) == 0 {
			return fmt.Errorf("nobody looks at Placement %s", cluster)
		}
		return err
	})
}

// goesWithAnyTime has an agent write times that Go encodes so that no API server takes them, and deletes its cluster.
func goesWithAnyTime(t *testing.T, cluster string) {
	t.Helper()
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	suite.Eventually(t, func() error { // The hub manager may write in between.
		own := &unstructured.Unstructured{}
		own.SetAPIVersion("cluster.open-cluster-management.io/v1")
		own.SetKind("ManagedCluster")
		require.NoError(t, theirs.Client.Get(t.Context(), client.ObjectKeyFromObject(c), own))
		conditions, _, err := unstructured.NestedSlice(own.Object, "status", "conditions")
		require.NoError(t, err)
		for kind, at := range map[string]string{"Beyond": beyond, "Before": before} {
			conditions = append(conditions, map[string]any{
				"type": kind, "status": "True", "reason": "Any", "message": "", "lastTransitionTime": at,
			})
		}
		require.NoError(t, unstructured.SetNestedSlice(own.Object, conditions, "status", "conditions"))
		return theirs.Client.Status().Update(t.Context(), own)
	})
	require.NoError(t, theirs.Client.Delete(t.Context(), c))
	suite.Eventually(t, func() error {
		if err := theirs.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster is still there: %v, %w", c.Status.Conditions, err)
		}
		return nil
	})
}

// removesNothing shows that all objects that nobody can decode still exist.
func removesNothing(t *testing.T, all []taken) {
	t.Helper()
	for _, one := range all {
		err := theirs.Client.Get(t.Context(), client.ObjectKeyFromObject(one.object), one.object)
		require.NoError(t, err, "%s", one)
		require.Nil(t, one.object.GetDeletionTimestamp(), "%s", one)
	}
}

// readyz returns what the hub manager says about itself.
func readyz(t *testing.T, config hub.Config) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+config.HealthAddress+"/readyz?verbose", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// repaired shows that an object counts again as soon as it can be decoded.
func repaired(t *testing.T, config hub.Config) {
	t.Helper()
	bomb := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "bomb"}}
	require.NoError(t, patch(bomb, `{"spec":{"leaseDurationSeconds":60,"hubAcceptsClient":true}}`)(t.Context(), theirs.Client))
	suite.Eventually(t, func() error { return accepted(t.Context(), theirs, "bomb") })
	assert.NotContains(t, readyz(t, config), "ManagedCluster bomb")
}

// policiesRefuse adds our policies to the definitions of OCM. They refuse all but times in works, of which there may be
// too many for a policy; and an object that was beyond a bound before can be edited.
func policiesRefuse(t *testing.T) {
	t.Helper()
	require.NoError(t, theirs.Apply(t.Context(), manifests.Policies()...))
	theirs.AwaitPolicies(t)
	suite.Eventually(t, func() error {
		late := raw("cluster.open-cluster-management.io/v1beta1", "Placement", namespace, "late",
			map[string]any{"numberOfClusters": int64(99999999999)})
		if err := theirs.Client.Create(t.Context(), late, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the policies are not in force: %w", err)
		}
		return nil
	})
	left := slices.DeleteFunc(tryAll(t, theirs, "guarded"), func(one taken) bool {
		kind, last := one.object.GetKind(), one.path[len(one.path)-1]
		administered := kind == "ManagedClusterSet" || kind == "ManagedClusterSetBinding" || kind == "AppliedManifestWork"
		return administered || kind == "ManifestWork" && last == "lastTransitionTime"
	})
	assert.Empty(t, sentences(left))
	old := raw("cluster.open-cluster-management.io/v1beta1", "Placement", namespace, "bomb", nil)
	require.NoError(t, patch(old, `{"spec":{"clusterSets":["a"]}}`)(t.Context(), theirs.Client), "another field")
	require.NoError(t, patch(old, `{"metadata":{"labels":{"a":"b"}}}`)(t.Context(), theirs.Client))
	require.NoError(t, patch(old, `{"spec":{"numberOfClusters":1}}`)(t.Context(), theirs.Client), "the repair")
	require.Error(t, patch(old, `{"spec":{"numberOfClusters":99999999999}}`)(t.Context(), theirs.Client), "not again")
}
