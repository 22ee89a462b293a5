package token

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// Shows: registration/infrastructure-repaired
func TestWhichAddOnsConcernUs(t *testing.T) {
	conditioned := addOn(kube("csr"))
	conditioned.Status.Conditions = []metav1.Condition{*tokens.Ready("c1", "a", "u")}
	empty := addOn(addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient})
	for sentence, tc := range map[string]struct {
		addOn *addonv1beta1.ManagedClusterAddOn
		want  bool
	}{
		"one with the driver token":                   {addOn(kube(tokens.Driver)), true},
		"one with it beside a custom signer":          {addOn(custom(), kube(tokens.Driver)), true},
		"one whose second kube client has it":         {addOn(kube(""), kube(tokens.Driver)), true},
		"one that still has the condition":            {conditioned, true},
		"not one with the driver csr":                 {addOn(kube("csr")), false},
		"not one with no driver yet":                  {addOn(kube("")), false},
		"not one with a custom signer only":           {addOn(custom()), false},
		"not one whose kube client says nothing":      {empty, false},
		"not one without any registration whatsoever": {addOn(), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, concerns(tc.addOn))
			created := addOnChanges().Create(event.CreateEvent{Object: tc.addOn})
			assert.Equal(t, tc.want, created)
			// What the hub has been without is seen when it starts, also in the stored version.
			wire := addonapi.AddOnToAlpha(tc.addOn)
			if len(wire.Status.Registrations) == 1 {
				assert.Equal(t, tc.want, addOnChanges().Create(event.CreateEvent{Object: wire}))
			}
			assert.Equal(t, tc.want, addOnChanges().Delete(event.DeleteEvent{Object: tc.addOn}))
		})
	}
	assert.False(t, addOnChanges().Create(event.CreateEvent{Object: &addonv1alpha1.AddOnTemplate{}}))
}

// held is an add-on that waits for its hook.
func held() *addonv1beta1.ManagedClusterAddOn {
	a := addOn(kube(tokens.Driver))
	a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/hook"}
	return a
}

func TestWhichChangesOfAddOnsMatter(t *testing.T) {
	for sentence, tc := range map[string]struct {
		before *addonv1beta1.ManagedClusterAddOn
		edit   func(*addonv1beta1.ManagedClusterAddOn)
		want   bool
	}{
		"the driver is chosen": {addOn(kube("")), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Registrations[0].KubeClient.Driver = tokens.Driver
		}, true},
		"the driver is given up": {addOn(kube(tokens.Driver)), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Registrations = nil
		}, true},
		"the condition is edited": {addOn(kube(tokens.Driver)), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{*tokens.NotReady("x")}
		}, true},
		"it begins to leave": {addOn(kube(tokens.Driver)), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, true},
		"its hook is over": {held(), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Finalizers = nil
		}, true},
		"it is another one of the same name": {addOn(kube(tokens.Driver)), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.UID = "next"
		}, true},
		"its health changes": {addOn(kube(tokens.Driver)), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
		}, false},
		"one that does not concern us leaves": {addOn(kube("csr")), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			after := tc.before.DeepCopy()
			tc.edit(after)
			assert.Equal(t, tc.want, addOnChanges().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: after}))
		})
	}
}

// Shows: registration/infrastructure-repaired
func TestWhichAddOnAnObjectIsOf(t *testing.T) {
	object := func(labels map[string]string) client.Object {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "x", Labels: labels}}
	}
	request := func(namespace, name string) []ctrl.Request {
		r := ctrl.Request{}
		r.Namespace, r.Name = namespace, name
		return []ctrl.Request{r}
	}
	for sentence, tc := range map[string]struct {
		labels         map[string]string
		infrastructure []ctrl.Request
	}{
		"infrastructure is of the add-on that its label names": {tokens.Labels("a"), request("shared", "a")},
		"without the mark it is not":                           {map[string]string{tokens.LabelName: "a"}, nil},
		"without a name it is not":                             {map[string]string{tokens.LabelInfrastructure: "true"}, nil},
		"with an empty name it is not":                         {tokens.Labels(""), nil},
		"unless it is marked as such it is not": {
			map[string]string{tokens.LabelName: "a", tokens.LabelInfrastructure: "false"}, nil,
		},
		"without labels it is nobody's": {nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.infrastructure, ofInfrastructure(t.Context(), object(tc.labels)))
		})
	}
}

func TestWhichChangesOfClustersMatter(t *testing.T) {
	cluster := func(accepted bool, labels map[string]string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
		}
	}
	update := func(before, after client.Object) bool {
		return acceptanceChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	assert.True(t, update(cluster(true, nil), cluster(false, nil)))
	assert.True(t, update(cluster(false, nil), cluster(true, nil)))
	assert.False(t, update(cluster(true, nil), cluster(true, map[string]string{"a": "b"})))
	assert.True(t, acceptanceChanges().Delete(event.DeleteEvent{Object: cluster(true, nil)}))
}
