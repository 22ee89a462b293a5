package attacks_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/governed.yaml
var governedFile []byte

// governed defines an add-on that people enable, with a policy and windows that are for it alone, and enables it on
// clusters that are accepted here.
func governed(t *testing.T, addOn string, clusters ...string) {
	t.Helper()
	require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll(governedFile, []byte("ADDON"), []byte(addOn))))
	for _, cluster := range clusters {
		require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
		suite.Eventually(t, func() error {
			return shared.enable(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn})
		})
	}
}

func policyOf(addOn string) *policies.AddOnPolicy {
	return &policies.AddOnPolicy{ObjectMeta: in("", addOn)}
}

func windowOf(name string) *policies.MaintenanceWindow {
	return &policies.MaintenanceWindow{ObjectMeta: in("", name), Spec: policies.MaintenanceWindowSpec{
		Kind: "Allow", Schedule: "0 1 * * *", Duration: metav1.Duration{Duration: time.Hour},
	}}
}

// waitsFor waits until an add-on is not configured because of something, and returns what it says.
func waitsFor(t *testing.T, cluster, addOn, text string) (said string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var own addonv1alpha1.ManagedClusterAddOn
		if err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}, &own); err != nil {
			return err
		}
		c := meta.FindStatusCondition(own.Status.Conditions, "Configured")
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s on %s: Configured is %+v", addOn, cluster, c)
		}
		said = c.Message
		return nil
	})
	return said
}

// Shows: security/policies-are-of-their-own
func TestNoShippedRoleWritesPoliciesOrWindows(t *testing.T) {
	governed(t, "unowned")
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: in("", "views"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "spokelet-view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer@example.com"}},
	}))
	all := maps.Clone(shared.clients)
	all["a viewer of the fleet"] = shared.plane.As(t, "viewer@example.com")
	const approves = `{"spec":{"approval":"PerRollout","approved":["0123456789abcdef0123456789abcdef01234567"]}}`
	status := map[string]attempt{
		"writes the status of a policy": changeStatus(policyOf("unowned"), `{"status":{"waiting":9}}`),
		"writes the status of a window": changeStatus(windowOf("unowned"), `{"status":{"active":true}}`),
	}
	spec := map[string]attempt{
		"creates a policy":   create(policyOf("hello")),
		"approves":           change(policyOf("unowned"), approves),
		"resumes":            change(policyOf("unowned"), `{"spec":{"paused":null}}`),
		"retries":            change(policyOf("unowned"), `{"spec":{"retry":["0123456789abcdef0123456789abcdef01234567"]}}`),
		"deletes a policy":   remove(policyOf("unowned")),
		"deletes policies":   func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, policyOf("")) },
		"creates a window":   create(windowOf("mine")),
		"moves a window":     change(windowOf("unowned"), `{"spec":{"schedule":"* * * * *"}}`),
		"ends a window":      change(windowOf("unowned"), `{"spec":{"until":"2020-01-01T00:00:00Z"}}`),
		"deletes a window":   remove(windowOf("unowned")),
		"deletes windows":    func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, windowOf("")) },
		"labels a policy":    change(policyOf("unowned"), `{"metadata":{"labels":{"a":"b"}}}`),
		"finalizes a policy": change(policyOf("unowned"), `{"metadata":{"finalizers":["example.com/x"]}}`),
	}
	for name, c := range all {
		tries := maps.Clone(spec)
		if name != theManager { // It says how many wait, and decides nothing by that.
			maps.Copy(tries, status)
		}
		for sentence, try := range tries {
			err := try(t.Context(), c)
			assert.True(t, apierrors.IsForbidden(err), "%s %s: the answer is %v", name, sentence, err)
		}
	}
}

// An administrator approves the content that the author has written. The author writes other content in its place, with
// an AddOnPolicy among the objects of the template.
//
// Shows: security/authors-approve-nothing
func TestAnAuthorGainsNothingByAnApproval(t *testing.T) {
	const addOn, cluster = "approved", "approved-one"
	governed(t, addOn, cluster)
	resumes := change(policyOf(addOn), `{"spec":{"paused":null,"approval":"PerRollout"}}`)
	require.NoError(t, resumes(t.Context(), shared.admin))
	const words = "does not approve content "
	said := waitsFor(t, cluster, addOn, words)
	_, name, _ := strings.Cut(said, words)
	require.NoError(t, change(policyOf(addOn), `{"spec":{"approved":["`+name+`"]}}`)(t.Context(), shared.admin))
	deployed(t, cluster, addOn, "first")

	writes := change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)}, `{"spec":{"agentSpec":{"workload":{"manifests":[`+
		`{"apiVersion":"addon.spokelet.io/v1alpha1","kind":"AddOnPolicy","metadata":{"name":"`+addOn+`"},"spec":{}}]}}}}`)
	require.NoError(t, writes(t.Context(), shared.clients[author]))
	said = waitsFor(t, cluster, addOn, words)
	assert.NotContains(t, said, name, "other content has another name")
	again := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, addOn)}
	require.NoError(t, remove(again.DeepCopy())(t.Context(), shared.clients[author]))
	suite.Eventually(t, func() error { return create(again.DeepCopy())(t.Context(), shared.clients[author]) })
	waitsFor(t, cluster, addOn, words)

	approved := &policies.AddOnPolicy{}
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKey{Name: addOn}, approved))
	assert.Equal(t, []string{name}, approved.Spec.Approved)
	require.NoError(t, change(policyOf(addOn), `{"spec":{"approval":"None"}}`)(t.Context(), shared.admin))
	deployed(t, cluster, addOn, "AddOnPolicy") // To the cluster, whose agent writes nothing on the hub.
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKey{Name: addOn}, approved))
	assert.Equal(t, policies.ApprovalNone, approved.Spec.Approval)
	assert.Equal(t, []string{name}, approved.Spec.Approved)
}

// hoursAhead is a time zone whose clock is twelve hours ahead of that of UTC.
const hoursAhead = "Etc/GMT-12"

// allows makes the window of an add-on one that is closed by the clock of UTC, and open by one that is twelve hours
// ahead, for the next hours.
func allows(t *testing.T, addOn, zone string) {
	t.Helper()
	hour := time.Now().UTC().Add(6 * time.Hour).Hour()
	patch := fmt.Sprintf(`{"spec":{"kind":"Allow","schedule":"0 %d * * *","duration":"12h",%s}}`, hour, zone)
	require.NoError(t, change(windowOf(addOn), patch)(t.Context(), shared.admin))
	require.NoError(t, change(policyOf(addOn), `{"spec":{"paused":null}}`)(t.Context(), shared.admin))
}

// claims has an agent report a time zone.
func claims(t *testing.T, cluster, zone string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return changeStatus(newCluster(cluster), `{"status":{"clusterClaims":[{"name":"timezone.example.com","value":"`+zone+`"}]}}`)(
			t.Context(), shared.clients[who("the agent of "+cluster)])
	})
}

// Shows: security/claims-move-a-courtesy
func TestTheClaimsOfAnAgentMoveItsOwnCourtesyWindowAlone(t *testing.T) {
	const evil, honest = "zoned-evil", "zoned-honest"
	governed(t, "courtesy", evil, honest)
	governed(t, "bound")
	for _, cluster := range []string{evil, honest} {
		require.NoError(t, shared.enable(t.Context(), client.ObjectKey{Namespace: cluster, Name: "bound"}))
		claims(t, cluster, "UTC")
	}
	allows(t, "courtesy", `"timeZone":null,"timeZoneClaim":"timezone.example.com"`)
	allows(t, "bound", `"timeZone":"UTC"`)
	const closed = "no MaintenanceWindow allows it now"
	for _, cluster := range []string{evil, honest} {
		waitsFor(t, cluster, "courtesy", closed)
		waitsFor(t, cluster, "bound", closed)
	}
	claims(t, evil, hoursAhead)
	deployed(t, evil, "courtesy", "first") // As documented: it is a courtesy of the agent.
	waitsFor(t, honest, "courtesy", closed)
	waitsFor(t, evil, "bound", closed)
	agent := shared.clients[who("the agent of "+evil)]
	err := change(newCluster(evil), `{"metadata":{"labels":{"kind":"shop"}}}`)(t.Context(), agent)
	require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
	err = changeStatus(newCluster(honest), `{"status":{"clusterClaims":[]}}`)(t.Context(), agent)
	require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)

	// A claim that is no time zone holds the own cluster alone.
	claims(t, evil, "nowhere")
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", "courtesy")},
		`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"second"}}]}}}}`)(
		t.Context(), shared.admin))
	waitsFor(t, evil, "courtesy", "MaintenanceWindow courtesy cannot be used")
	claims(t, honest, hoursAhead)
	deployed(t, honest, "courtesy", "second")
}
