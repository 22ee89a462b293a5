package deploy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func kube(driver, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
			Driver:  driver,
			Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}},
		},
	}
}

// Shows: registration/registration-applied, hub/registrations-merged
func TestMergeRegistrations(t *testing.T) {
	const account = "system:serviceaccount:c1:a-agent"
	custom := addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "s.io/s"},
	}
	tests := map[string]struct {
		stored, wanted, want []addonv1beta1.RegistrationConfig
	}{
		"nothing":            {nil, nil, []addonv1beta1.RegistrationConfig{}},
		"as the hub says":    {nil, []addonv1beta1.RegistrationConfig{kube("", "u", "g"), custom}, []addonv1beta1.RegistrationConfig{kube("", "u", "g"), custom}},
		"the driver is kept": {[]addonv1beta1.RegistrationConfig{kube("csr", "forged", "system:masters")}, []addonv1beta1.RegistrationConfig{kube("", "u", "g")}, []addonv1beta1.RegistrationConfig{kube("csr", "u", "g")}},
		"csr without a subject is the default": {
			[]addonv1beta1.RegistrationConfig{kube("csr", "")}, []addonv1beta1.RegistrationConfig{kube("", "")},
			[]addonv1beta1.RegistrationConfig{kube("csr", "system:open-cluster-management:cluster:c1:addon:a:agent:a",
				"system:open-cluster-management:cluster:c1:addon:a", "system:open-cluster-management:addon:a")},
		},
		"a token's subject is that of its account": {
			[]addonv1beta1.RegistrationConfig{kube("token", account)}, []addonv1beta1.RegistrationConfig{kube("", "u", "g")},
			[]addonv1beta1.RegistrationConfig{kube("token", account)},
		},
		"any other subject with a token is dropped": {
			[]addonv1beta1.RegistrationConfig{kube("token", "system:serviceaccount:kube-system:admin")},
			[]addonv1beta1.RegistrationConfig{kube("", "u", "g")}, []addonv1beta1.RegistrationConfig{kube("token", "")},
		},
		"groups with a token are dropped": {
			[]addonv1beta1.RegistrationConfig{kube("token", account, "system:masters")},
			[]addonv1beta1.RegistrationConfig{kube("", "u", "g")}, []addonv1beta1.RegistrationConfig{kube("token", "")},
		},
		"drivers are matched by position among kube clients": {
			[]addonv1beta1.RegistrationConfig{custom, kube("csr", "x"), kube("token", account)},
			[]addonv1beta1.RegistrationConfig{kube("", "u"), custom, kube("", "v")},
			[]addonv1beta1.RegistrationConfig{kube("csr", "u"), custom, kube("token", account)},
		},
		"what the hub does not want goes": {
			[]addonv1beta1.RegistrationConfig{kube("csr", "u"), custom}, nil, []addonv1beta1.RegistrationConfig{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}}
			addOn.Status.Registrations = test.stored
			assert.Equal(t, test.want, mergeRegistrations("c1", addOn, test.wanted))
		})
	}
}

func permission(namespace, kind, name string) addon.Permission {
	return addon.Permission{
		Namespace: namespace, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "group"}},
	}
}

func TestPlanBindings(t *testing.T) {
	const base = "open-cluster-management:a:clusterrole:agent"
	tests := map[string]struct {
		permissions []addon.Permission
		// existing makes what is there from what a first plan for other permissions creates.
		existing []addon.Permission
		change   func(existing []*rbacv1.RoleBinding)
		want     []string
	}{
		"the names of OCM": {
			permissions: []addon.Permission{permission("c1", "ClusterRole", "admin"), permission("shared", "Role", "reader")},
			want:        []string{"create c1/" + base + " admin", "create shared/open-cluster-management:a:role:agent:cluster:c1 reader"},
		},
		"nothing to do": {
			permissions: []addon.Permission{permission("c1", "ClusterRole", "admin"), permission("shared", "Role", "reader")},
			existing:    []addon.Permission{permission("c1", "ClusterRole", "admin"), permission("shared", "Role", "reader")},
		},
		"a second role of a kind gets a name of its own": {
			permissions: []addon.Permission{
				permission("c1", "ClusterRole", "one"), permission("c1", "ClusterRole", "two"), permission("c1", "ClusterRole", "one"),
			},
			want: []string{"create c1/" + base + " one", "create c1/" + base + ":bcce4979 two"},
		},
		"another role in the cluster's namespace replaces the first": {
			permissions: []addon.Permission{permission("c1", "ClusterRole", "new")},
			existing:    []addon.Permission{permission("c1", "ClusterRole", "old")},
			want:        []string{"replace c1/" + base + " new"},
		},
		"another role in a shared namespace replaces the first": {
			permissions: []addon.Permission{permission("shared", "ClusterRole", "new")},
			existing:    []addon.Permission{permission("shared", "ClusterRole", "old")},
			want:        []string{"replace shared/" + base + ":cluster:c1 new"},
		},
		"what is no longer wanted goes": {
			existing: []addon.Permission{permission("c1", "ClusterRole", "old"), permission("shared", "ClusterRole", "old")},
			want:     []string{"delete c1/" + base, "delete shared/" + base + ":cluster:c1"},
		},
		"what belongs to somebody else stays": {
			existing: []addon.Permission{permission("c1", "ClusterRole", "old")},
			change:   func(existing []*rbacv1.RoleBinding) { existing[0].OwnerReferences = nil },
		},
		"changed subjects are repaired": {
			permissions: []addon.Permission{permission("c1", "ClusterRole", "admin")},
			existing:    []addon.Permission{permission("c1", "ClusterRole", "admin")},
			change: func(existing []*rbacv1.RoleBinding) {
				existing[0].Subjects = append(existing[0].Subjects, rbacv1.Subject{Kind: "User", Name: "intruder"})
			},
			want: []string{"patch c1/" + base + " admin"},
		},
		"labels of others stay": {
			permissions: []addon.Permission{permission("c1", "ClusterRole", "admin")},
			existing:    []addon.Permission{permission("c1", "ClusterRole", "admin")},
			change:      func(existing []*rbacv1.RoleBinding) { existing[0].Labels["team"] = "x" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf()
			f.addOn.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: "a", UID: "cma",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}}
			f.setup.Permissions = test.existing
			for _, s := range planBindings(f, nil) {
				f.bindings = append(f.bindings, s.After)
			}
			if test.change != nil {
				test.change(f.bindings)
			}
			f.setup.Permissions = test.permissions
			var got []string
			for _, s := range planBindings(f, nil) {
				if s.Verb == reconcile.Delete {
					got = append(got, "delete "+s.Before.Namespace+"/"+s.Before.Name)
					continue
				}
				got = append(got, string(s.Verb)+" "+s.After.Namespace+"/"+s.After.Name+" "+s.After.RoleRef.Name)
				assert.Equal(t, "group", s.After.Subjects[0].Name)
				assert.Len(t, s.After.Subjects, 1)
				labels := map[string]string{
					"open-cluster-management.io/addon-name": "a", "open-cluster-management.io/addon-template-name": "",
				}
				if s.After.Namespace != "c1" {
					labels["open-cluster-management.io/cluster-name"] = "c1"
				}
				assert.Equal(t, labels, withoutTeam(s.After.Labels))
				require.Len(t, s.After.OwnerReferences, 1)
				owner := s.After.OwnerReferences[0]
				assert.Nil(t, owner.Controller)
				if s.After.Namespace == "c1" {
					assert.Equal(t, "ManagedClusterAddOn", owner.Kind)
				} else {
					assert.Equal(t, "ClusterManagementAddOn", owner.Kind, "a binding elsewhere goes with the add-on as a whole, too")
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func withoutTeam(labels map[string]string) map[string]string {
	delete(labels, "team")
	return labels
}

// work is a work of the add-on with objects and conditions.
func work(t *testing.T, index int, objects []*unstructured.Unstructured, conditions ...metav1.Condition) *workv1.ManifestWork {
	t.Helper()
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: fmt.Sprintf("addon-a-deploy-%d", index), Generation: 2}}
	for _, o := range objects {
		raw, err := json.Marshal(o.Object)
		require.NoError(t, err)
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	w.Status.Conditions = conditions
	return w
}

func condition(kind string, status metav1.ConditionStatus, generation int64, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Message: message, Reason: "R"}
}

func fed(w *workv1.ManifestWork, resource, name string, values map[string]int64) {
	m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{
		Group: "apps", Resource: resource, Namespace: "ns", Name: name,
	}}
	for key, value := range values {
		m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
			Name: key, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
		})
	}
	// A value without a number must not be looked into.
	m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
		Name: "Broken", Value: workv1.FieldValue{Type: workv1.Integer},
	})
	w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, m)
}

// Shows: hub/health-from-works
func TestHealth(t *testing.T) {
	deployment := workloadObject("Deployment", "d", nil)
	daemonSet := workloadObject("DaemonSet", "s", nil)
	availableTrue := condition("Available", metav1.ConditionTrue, 2, "")
	one := func(object *unstructured.Unstructured, resource, name string, values map[string]int64) []*workv1.ManifestWork {
		w := work(t, 0, []*unstructured.Unstructured{object}, availableTrue)
		if values != nil {
			fed(w, resource, name, values)
		}
		return []*workv1.ManifestWork{w}
	}
	tests := map[string]struct {
		own    []*workv1.ManifestWork
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"no works": {nil, "Unknown", "WorkNotFound", "The add-on has no ManifestWork."},
		"a work that nobody has looked at": {
			[]*workv1.ManifestWork{work(t, 0, nil)}, "Unknown", "WorkNotApplied", "ManifestWork addon-a-deploy-0 is not applied yet.",
		},
		"a work that is not available": {
			[]*workv1.ManifestWork{work(t, 0, nil, condition("Available", metav1.ConditionFalse, 2, "gone"))},
			"False", "WorkNotApplied", "ManifestWork addon-a-deploy-0: gone",
		},
		"a work of which nothing is known counts as available": {
			[]*workv1.ManifestWork{work(t, 0, nil, condition("Available", metav1.ConditionUnknown, 2, ""))},
			"True", "ProbeAvailable", "",
		},
		"no workloads":           {[]*workv1.ManifestWork{work(t, 0, nil, availableTrue)}, "True", "ProbeAvailable", ""},
		"no feedback yet":        {one(deployment, "deployments", "d", nil), "Unknown", "NoProbeResult", "Deployment ns/d"},
		"feedback about another": {one(deployment, "deployments", "x", map[string]int64{"ReadyReplicas": 1}), "Unknown", "NoProbeResult", "Deployment ns/d"},
		"a ready pod":            {one(deployment, "deployments", "d", map[string]int64{"ReadyReplicas": 1, "Replicas": 3}), "True", "ProbeAvailable", ""},
		"no ready pod":           {one(deployment, "deployments", "d", map[string]int64{"Replicas": 3}), "False", "ProbeUnavailable", "Deployment ns/d has 0 ready of 3 pods"},
		"no pods wanted":         {one(deployment, "deployments", "d", map[string]int64{"Replicas": 0}), "True", "ProbeAvailable", ""},
		"switched off":           {one(workloadObject("Deployment", "d", int64(0)), "deployments", "d", nil), "True", "ProbeAvailable", ""},
		"a complete DaemonSet":   {one(daemonSet, "daemonsets", "s", map[string]int64{"NumberReady": 2, "DesiredNumberScheduled": 2}), "True", "ProbeAvailable", ""},
		"an empty DaemonSet":     {one(daemonSet, "daemonsets", "s", map[string]int64{"NumberReady": 0, "DesiredNumberScheduled": 0}), "True", "ProbeAvailable", ""},
		"a partial DaemonSet":    {one(daemonSet, "daemonsets", "s", map[string]int64{"NumberReady": 1, "DesiredNumberScheduled": 2}), "False", "ProbeUnavailable", "DaemonSet ns/s has 1 ready of 2 pods"},
		"one works and nothing is known of the other": {
			append(one(deployment, "deployments", "d", map[string]int64{"ReadyReplicas": 1}),
				one(daemonSet, "daemonsets", "s", nil)...), "Unknown", "NoProbeResult", "DaemonSet ns/s",
		},
		"one is broken and nothing is known of the other": {
			append(one(deployment, "deployments", "d", map[string]int64{"Replicas": 1}), one(daemonSet, "daemonsets", "s", nil)...),
			"False", "ProbeUnavailable", "Deployment ns/d",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := healthOf(factsOf(), test.own)
			require.True(t, known)
			assert.Equal(t, test.status, got.Status)
			assert.Equal(t, test.reason, got.Reason)
			assert.Contains(t, got.Message, test.says)
			assert.NotEmpty(t, got.Message)
		})
	}
}

func TestManifestApplied(t *testing.T) {
	good := condition("Applied", metav1.ConditionTrue, 2, "")
	bad := condition("Applied", metav1.ConditionFalse, 2, "one of two failed")
	hosted := func(f *facts) {
		f.addOn.Annotations = map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": "h"}
	}
	hostedWork := func(c metav1.Condition) *workv1.ManifestWork {
		w := work(t, 0, nil, c)
		w.Namespace, w.Name = "h", "addon-a-deploy-hosting-c1-0"
		return w
	}
	tests := map[string]struct {
		change func(f *facts)
		side   works.Side
		err    error
		done   []error
		kept   []*workv1.ManifestWork
		waits  string
		state  conditionState
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"nothing to apply":  {state: conditionKnown, status: "True", reason: "AddonManifestApplied", says: "no manifests"},
		"all works applied": {kept: []*workv1.ManifestWork{work(t, 0, nil, good), work(t, 1, nil, good)}, state: conditionKnown, status: "True", reason: "AddonManifestApplied", says: "All manifests"},
		"the first failed":  {kept: []*workv1.ManifestWork{work(t, 0, nil, bad), work(t, 1, nil, good)}, state: conditionKnown, status: "False", reason: "AddonManifestAppliedFailed", says: "ManifestWork addon-a-deploy-0: one of two failed."},
		"one failed and one is pending": {
			kept:  []*workv1.ManifestWork{work(t, 0, nil), work(t, 1, nil, bad)},
			state: conditionKnown, status: "False", reason: "AddonManifestAppliedFailed", says: "addon-a-deploy-1",
		},
		"a work waits for what failed": {
			kept: []*workv1.ManifestWork{work(t, 0, nil, good), work(t, 1, nil, bad)}, waits: "ManifestWork x waits.",
			state: conditionKnown, status: "False", reason: "AddonManifestAppliedFailed",
			says: "ManifestWork x waits. ManifestWork addon-a-deploy-1: one of two failed.",
		},
		"one is pending":     {kept: []*workv1.ManifestWork{work(t, 0, nil, good), work(t, 1, nil)}, state: conditionPending},
		"one is out of date": {kept: []*workv1.ManifestWork{work(t, 0, nil, condition("Applied", metav1.ConditionFalse, 1, "old"))}, state: conditionPending},
		"not ready":          {err: &addon.NotReadyError{Message: "m"}, state: conditionUnchanged},
		"invalid":            {err: &addon.InvalidError{Message: "template broken"}, state: conditionKnown, status: "False", reason: "ManifestWorkApplyFailed", says: "template broken."},
		"a lost race":        {done: []error{apierrors.NewConflict(schema.GroupResource{}, "w", nil)}, state: conditionUnchanged},
		"a failed write": {
			done: []error{nil, errors.New("no space")}, state: conditionKnown, status: "False", reason: "ManifestWorkApplyFailed",
			says: "no space.",
		},
		"the managed side of a hosted add-on": {
			change: hosted, kept: []*workv1.ManifestWork{work(t, 0, nil, good)},
			state: conditionKnown, status: "True", reason: "AddonManifestApplied",
			says: "All manifests of the add-on on the managed cluster are applied.",
		},
		"works on the hosting cluster have a condition of their own": {
			change: hosted, side: works.Hosting, kept: []*workv1.ManifestWork{work(t, 0, nil, bad), hostedWork(good)},
			state: conditionKnown, status: "True", reason: "AddonManifestApplied",
			says: "All manifests of the add-on on hosting cluster h are applied.",
		},
		"and a failure there is one of the hosting side alone": {
			change: hosted, side: works.Hosting, kept: []*workv1.ManifestWork{work(t, 0, nil, good), hostedWork(bad)},
			state: conditionKnown, status: "False", reason: "AddonManifestAppliedFailed", says: "addon-a-deploy-hosting-c1-0",
		},
		"which the managed side does not show": {
			change: hosted, kept: []*workv1.ManifestWork{work(t, 0, nil, good), hostedWork(bad)},
			state: conditionKnown, status: "True", reason: "AddonManifestApplied", says: "on the managed cluster",
		},
		"nothing to apply on the hosting cluster": {
			change: hosted, side: works.Hosting, kept: []*workv1.ManifestWork{work(t, 0, nil, good)},
			state: conditionKnown, status: "True", reason: "AddonManifestApplied", says: "no manifests to apply on hosting cluster h",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf()
			if test.change != nil {
				test.change(&f)
				f.host = &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
			}
			p, side := plan{worksErr: test.err}, cmp.Or(test.side, works.Managed)
			for i := range test.done {
				p.works = append(p.works, workStep{Verb: reconcile.Create, After: work(t, i, nil)})
			}
			if test.waits != "" {
				p.waits = map[works.Side][]string{side: {test.waits}}
			}
			got, state := manifestApplied(f, side, p, results{works: test.done, current: test.kept})
			require.Equal(t, test.state, state)
			if state != conditionKnown {
				return
			}
			assert.Equal(t, map[works.Side]string{
				works.Managed: "ManifestApplied", works.Hosting: "HostingManifestApplied",
			}[side], got.Type)
			assert.Equal(t, test.status, got.Status)
			assert.Equal(t, test.reason, got.Reason)
			assert.Contains(t, got.Message, test.says)
		})
	}
}

// Shows: registration/registration-applied
func TestRegistrationApplied(t *testing.T) {
	clusterRole := bindingStep{Verb: reconcile.Create, After: &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cm-admin"},
	}}
	role := bindingStep{Verb: reconcile.Create, After: &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "cm-reader"},
	}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "b", errors.New("attempting to grant"))
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "roles"}, "cm-reader")
	some := []addonv1beta1.RegistrationConfig{kube("", "u")}
	tests := map[string]struct {
		facts  func(f *facts)
		plan   plan
		done   []error
		known  bool
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"no registration":      {known: true, status: "True", reason: "NilRegistration"},
		"all set":              {plan: plan{registrations: some}, known: true, status: "True", reason: "SetPermissionApplied"},
		"pending":              {plan: plan{registrations: some, pending: "later"}, known: true, status: "False", reason: "PermissionConfigPending", says: []string{"later"}},
		"the agent waits":      {facts: func(f *facts) { f.registrationsErr = &addon.NotReadyError{} }},
		"the set-up waits":     {facts: func(f *facts) { f.setupErr = &addon.NotReadyError{} }},
		"a lost race":          {plan: plan{registrations: some, bindings: []bindingStep{role}}, done: []error{apierrors.NewConflict(schema.GroupResource{}, "", nil)}},
		"the agent is invalid": {facts: func(f *facts) { f.registrationsErr = &addon.InvalidError{Message: "bad"} }, known: true, status: "False", reason: "SetPermissionFailed", says: []string{"bad."}},
		"a missing grant": {
			plan: plan{registrations: some, bindings: []bindingStep{clusterRole, role}},
			done: []error{forbidden, forbidden}, known: true, status: "False", reason: "SetPermissionFailed",
			says: []string{
				"ClusterRole cm-admin cannot be bound for the agent in namespace c1: ServiceAccount " +
					"open-cluster-management-hub/addon-manager-controller-sa may not grant rights that it does not have.",
				"kubectl create clusterrolebinding addon-manager-cm-admin --clusterrole=cm-admin " +
					"--serviceaccount=open-cluster-management-hub:addon-manager-controller-sa.",
				"kubectl create rolebinding addon-manager-cm-reader -n shared --role=cm-reader " +
					"--serviceaccount=open-cluster-management-hub:addon-manager-controller-sa.",
				"attempting to grant",
			},
		},
		"a missing role": {
			plan: plan{registrations: some, bindings: []bindingStep{clusterRole, role}},
			done: []error{nil, missing}, known: true, status: "False", reason: "SetPermissionFailed",
			says: []string{"Role cm-reader cannot be bound for the agent in namespace shared: create the Role or the namespace"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf()
			if test.facts != nil {
				test.facts(&f)
			}
			got, known := registrationApplied(f, test.plan, results{bindings: test.done})
			require.Equal(t, test.known, known)
			if !known {
				return
			}
			assert.Equal(t, test.status, got.Status)
			assert.Equal(t, test.reason, got.Reason)
			for _, says := range test.says {
				assert.Contains(t, got.Message, says)
			}
		})
	}
}

// Shows: hub/unknown-deletes-nothing
func TestUnknownDeletesNothing(t *testing.T) {
	f := factsOf(configMap("a", 1))
	f.setup.Permissions = []addon.Permission{permission("c1", "ClusterRole", "admin")}
	f, _ = simulate(t, f)
	for _, s := range planBindings(f, nil) {
		f.bindings = append(f.bindings, s.After)
	}
	for name, err := range map[string]error{
		"not ready": &addon.NotReadyError{Message: "m"}, "invalid": &addon.InvalidError{Message: "m"}, "other": errors.New("m"),
	} {
		t.Run(name, func(t *testing.T) {
			unknown := f
			unknown.rendering, unknown.setup, unknown.registrations = addon.Rendering{}, addon.Setup{}, nil
			unknown.renderErr, unknown.setupErr, unknown.registrationsErr = err, err, err
			unknown.addOn = f.addOn.DeepCopy()
			unknown.addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{kube("csr", "u")}
			unknown.addOn.Status.Namespace = "there"
			p := decide(unknown)
			assert.Empty(t, p.works)
			assert.Empty(t, p.bindings)
			after := conclude(unknown, p, results{})
			assert.Equal(t, unknown.addOn.Status.Registrations, after.Status.Registrations)
			assert.Equal(t, "there", after.Status.Namespace)
		})
	}
}

func TestConclude(t *testing.T) {
	f := factsOf()
	f.about.SupportedConfigs = []addonv1beta1.ConfigGroupResource{
		{Group: "b", Resource: "x"}, {Group: "a", Resource: "y"}, {Group: "a", Resource: "x"},
	}
	f.addOn.Annotations = map[string]string{"addon.open-cluster-management.io/v1alpha1-install-namespace": "old"}
	f.addOn.Status.Conditions = []metav1.Condition{
		{Type: "ManifestApplied", Status: metav1.ConditionFalse, Reason: "AddonManifestAppliedFailed"},
		{Type: "Configured", Status: metav1.ConditionTrue},
	}
	p := plan{kept: []*workv1.ManifestWork{work(t, 0, nil)}}
	after := conclude(f, p, results{})
	assert.Equal(t, []addonv1beta1.ConfigGroupResource{
		{Group: "a", Resource: "x"}, {Group: "a", Resource: "y"}, {Group: "b", Resource: "x"},
	}, after.Status.SupportedConfigs)
	assert.Equal(t, "old", after.Status.Namespace)
	assert.Equal(t, addonv1beta1.HealthCheckModeCustomized, after.Status.HealthCheck.Mode)
	assert.Nil(t, meta.FindStatusCondition(after.Status.Conditions, "ManifestApplied"), "an old no is dropped while works are new")
	assert.NotNil(t, meta.FindStatusCondition(after.Status.Conditions, "Configured"), "conditions of others stay")
	assert.Equal(t, "WorkNotApplied", meta.FindStatusCondition(after.Status.Conditions, "Available").Reason)

	again := f
	again.addOn, again.now = after, f.now.Add(time.Hour)
	assert.Equal(t, after, conclude(again, p, results{}), "a second pass changes nothing")

	lease := f
	lease.setup = addon.Setup{Health: addon.HealthLease, Namespace: "own"}
	after = conclude(lease, p, results{})
	assert.Equal(t, "own", after.Status.Namespace)
	assert.Equal(t, addonv1beta1.HealthCheckModeLease, after.Status.HealthCheck.Mode)
	assert.Nil(t, meta.FindStatusCondition(after.Status.Conditions, "Available"), "the lease tells")

	silent := f
	silent.cluster = f.cluster.DeepCopy()
	silent.cluster.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterConditionAvailable", Status: metav1.ConditionUnknown}}
	after = conclude(silent, p, results{})
	assert.Nil(t, meta.FindStatusCondition(after.Status.Conditions, "Available"), "whoever noticed the silence tells")
}

func TestSettle(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "b", nil)
	tests := map[string]struct {
		facts     func(f *facts)
		plan      plan
		done      results
		published error
		want      reconcile.Class
	}{
		"all done":           {want: reconcile.ClassDone},
		"not ready":          {facts: func(f *facts) { f.setupErr = &addon.NotReadyError{} }, want: reconcile.ClassDone},
		"an earlier add-on":  {plan: plan{worksErr: &works.WaitError{}}, want: reconcile.ClassDone},
		"invalid":            {plan: plan{worksErr: &addon.InvalidError{Message: "m"}}, want: reconcile.ClassStalled},
		"broken":             {facts: func(f *facts) { f.registrationsErr = errors.New("m") }, want: reconcile.ClassRetry},
		"a missing grant":    {done: results{bindings: []error{forbidden}}, want: reconcile.ClassWaiting},
		"a name that is not": {done: results{works: []error{&nameTakenError{"m"}}}, want: reconcile.ClassWaiting},
		"a failed write":     {done: results{works: []error{errors.New("m")}}, want: reconcile.ClassRetry},
		"a lost race":        {published: apierrors.NewConflict(schema.GroupResource{}, "", nil), want: reconcile.ClassLostRace},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf()
			if test.facts != nil {
				test.facts(&f)
			}
			got := outcomeOf(f, test.plan, test.done, test.published)
			assert.Equal(t, test.want, got.Class())
			if test.want == reconcile.ClassWaiting {
				assert.False(t, got.Wake().Before(f.now.Add(firstRetry)))
				assert.True(t, got.Wake().Before(f.now.Add(2*firstRetry)))
			}
		})
	}
}

func TestAMissingGrantIsLookedForEverLater(t *testing.T) {
	for _, c := range []struct {
		status    metav1.ConditionStatus
		age, want time.Duration
	}{
		{"", time.Hour, firstRetry}, {metav1.ConditionTrue, time.Hour, firstRetry},
		{metav1.ConditionFalse, time.Second, firstRetry}, {metav1.ConditionFalse, 20 * time.Second, 10 * time.Second},
		{metav1.ConditionFalse, time.Hour, lastRetry},
	} {
		f := factsOf()
		if c.status != "" {
			f.addOn.Status.Conditions = []metav1.Condition{{
				Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied, Status: c.status,
				LastTransitionTime: metav1.NewTime(f.now.Add(-c.age)),
			}}
		}
		assert.Equal(t, c.want, retryDelay(f), "%v", c)
	}
}
