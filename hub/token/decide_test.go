package token

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

var (
	now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	key = types.NamespacedName{Namespace: "c1", Name: "a"}
)

func kube(driver string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: driver},
	}
}

func custom() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "s.io/s"},
	}
}

func addOn(registrations ...addonv1beta1.RegistrationConfig) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "now", ResourceVersion: "1"},
		Status:     addonv1beta1.ManagedClusterAddOnStatus{Registrations: registrations},
	}
}

// built returns the infrastructure of an add-on as the API server would have it.
func built(of *addonv1beta1.ManagedClusterAddOn) []client.Object {
	all := wanted(key, of, "")
	for i, object := range all {
		object.SetUID(types.UID([]string{"sa", "role", "binding"}[i]))
		object.SetResourceVersion("7")
	}
	return all
}

func verbs(p plan) []reconcile.Verb {
	var all []reconcile.Verb
	for _, s := range slices.Concat(p.steps, p.grants) {
		all = append(all, s.Verb)
	}
	return all
}

// Shows: registration/infrastructure-repaired
func TestDecide(t *testing.T) {
	nothing := []client.Object{nil, nil, nil}
	leaving := addOn(kube(tokens.Driver))
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	leaving.Finalizers = []string{"addon.open-cluster-management.io/addon-pre-delete"}
	left := leaving.DeepCopy()
	left.Finalizers = []string{"foregroundDeletion", "addon.open-cluster-management.io/hosting-manifests-cleanup"}
	for sentence, tc := range map[string]struct {
		facts  facts
		intent intent
		verbs  []reconcile.Verb
	}{
		"an add-on by token gets all three": {
			facts{addOn: addOn(kube(tokens.Driver)), accepted: true, have: nothing}, intentKeep, []reconcile.Verb{reconcile.Create, reconcile.Create, reconcile.Create},
		},
		"it gets them beside other registrations, too": {
			facts{addOn: addOn(custom(), kube("csr"), kube(tokens.Driver)), accepted: true, have: nothing},
			intentKeep, []reconcile.Verb{reconcile.Create, reconcile.Create, reconcile.Create},
		},
		"what is as it shall be is kept": {
			facts{addOn: addOn(kube(tokens.Driver)), accepted: true, have: built(addOn())}, intentKeep, []reconcile.Verb{reconcile.Keep, reconcile.Keep, reconcile.Keep},
		},
		"an add-on with another driver gets nothing": {
			facts{addOn: addOn(kube("csr"), custom()), accepted: true, have: nothing}, intentRemove, nil,
		},
		"what it has from before is removed": {
			facts{addOn: addOn(kube("csr")), accepted: true, have: built(addOn())},
			intentRemove, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"an add-on without registrations is one with another driver": {
			facts{addOn: addOn(), accepted: true, have: built(addOn())}, intentRemove, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"W-31 while an add-on leaves, all stays": {
			facts{addOn: leaving, accepted: true, have: built(addOn())}, intentNone, nil,
		},
		"nothing is made for an add-on that leaves": {
			facts{addOn: leaving, accepted: true, have: nothing}, intentNone, nil,
		},
		"when its hook is over, nothing stays": {
			facts{addOn: left, accepted: true, have: built(addOn())},
			intentRemove, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"of an add-on that is gone nothing stays": {
			facts{accepted: true, have: built(addOn())}, intentRemove, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"on a cluster that is not accepted nothing is made": {
			facts{addOn: addOn(kube(tokens.Driver)), have: nothing}, intentRefuse, nil,
		},
		"nor does anything stay there": {
			facts{addOn: addOn(kube(tokens.Driver)), have: built(addOn())}, intentRefuse, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"not even for an add-on that leaves": {
			facts{addOn: leaving, have: built(addOn())}, intentRefuse, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"in a namespace of others nothing is made, and what is there stays": {
			facts{addOn: addOn(kube(tokens.Driver)), accepted: true, have: built(addOn()), foreign: errors.New("of others")},
			intentRefuse, nil,
		},
		"what an add-on leaves there is removed": {
			facts{addOn: left, accepted: true, have: built(addOn()), foreign: errors.New("of others")},
			intentRemove, []reconcile.Verb{reconcile.Delete, reconcile.Delete, reconcile.Delete},
		},
		"an add-on with another driver is not told": {
			facts{addOn: addOn(kube("csr")), have: nothing}, intentRemove, nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.facts.now, tc.facts.key = now, key
			p := decide(tc.facts)
			assert.Equal(t, tc.intent, p.intent)
			assert.Equal(t, tc.verbs, verbs(p))
			assert.Equal(t, tc.intent == intentRefuse, p.why != "")
		})
	}
}

func TestTowards(t *testing.T) {
	const blocked = reconcile.Verb("")
	this := addOn(kube(tokens.Driver))
	earlier := addOn()
	earlier.UID = "before"
	edited := func(of *addonv1beta1.ManagedClusterAddOn, index int, edit func(client.Object)) client.Object {
		object := built(of)[index]
		edit(object)
		return object
	}
	as := func(t *testing.T, object client.Object) (*rbacv1.Role, *rbacv1.RoleBinding) {
		t.Helper()
		role, _ := object.(*rbacv1.Role)
		binding, _ := object.(*rbacv1.RoleBinding)
		return role, binding
	}
	unlabel := func(o client.Object) { o.SetLabels(nil) }
	for sentence, tc := range map[string]struct {
		index int
		there client.Object
		verb  reconcile.Verb
		check func(*testing.T, client.Object)
	}{
		"nothing there is created":               {0, nil, reconcile.Create, nil},
		"what is right is kept":                  {1, built(this)[1], reconcile.Keep, nil},
		"what has lost its labels gets them":     {0, edited(this, 0, unlabel), reconcile.Patch, nil},
		"what has neither label nor owner stays": {0, edited(nil, 0, unlabel), blocked, nil},
		"what has the label of another add-on stays": {0, edited(nil, 0, func(o client.Object) {
			o.SetLabels(tokens.Labels("b"))
		}), blocked, nil},
		"what has labels and no owner is taken over": {0, built(nil)[0], reconcile.Patch, func(t *testing.T, after client.Object) {
			t.Helper()
			assert.Equal(t, types.UID("now"), after.GetOwnerReferences()[0].UID)
			assert.Equal(t, types.UID("sa"), after.GetUID())
		}},
		"what is of an earlier add-on is replaced": {0, built(earlier)[0], reconcile.Replace, nil},
		"even without its labels":                  {1, edited(earlier, 1, unlabel), reconcile.Replace, nil},
		"what is being deleted is waited for": {0, edited(this, 0, func(o client.Object) {
			o.SetDeletionTimestamp(&metav1.Time{Time: now})
		}), blocked, nil},
		"labels and owners of others stay": {0, edited(nil, 0, func(o client.Object) {
			o.GetLabels()["x"] = "y"
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Other", Name: "o", UID: "o"}})
		}), reconcile.Patch, func(t *testing.T, after client.Object) {
			t.Helper()
			assert.Equal(t, "y", after.GetLabels()["x"])
			assert.Len(t, after.GetOwnerReferences(), 2)
		}},
		"rules are repaired": {1, edited(this, 1, func(o client.Object) {
			role, _ := as(t, o)
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"*"}})
		}), reconcile.Patch, func(t *testing.T, after client.Object) {
			t.Helper()
			role, _ := as(t, after)
			assert.Equal(t, tokens.Render("c1", "a").Role.Rules, role.Rules)
		}},
		"subjects are repaired": {2, edited(this, 2, func(o client.Object) {
			_, binding := as(t, o)
			binding.Subjects = nil
		}), reconcile.Patch, func(t *testing.T, after client.Object) {
			t.Helper()
			_, binding := as(t, after)
			assert.Equal(t, tokens.Render("c1", "a").Binding.Subjects, binding.Subjects)
		}},
		"a binding of another role is replaced": {2, edited(this, 2, func(o client.Object) {
			_, binding := as(t, o)
			binding.RoleRef.Name = "other"
		}), reconcile.Replace, nil},
		"what else an account has stays": {0, edited(this, 0, func(o client.Object) {
			account, isAccount := o.(*corev1.ServiceAccount)
			require.True(t, isAccount)
			account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		}), reconcile.Keep, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := towards(tc.there, wanted(key, this, "")[tc.index], this)
			assert.Equal(t, tc.verb == blocked, s.blocked != nil)
			assert.Equal(t, tc.verb, s.Verb)
			if tc.check != nil {
				tc.check(t, s.After)
			}
			if s.Verb == reconcile.Patch {
				again := towards(s.After, wanted(key, this, "")[tc.index], this)
				assert.Equal(t, reconcile.Keep, again.Verb, "one repair is enough")
			}
		})
	}
}

func TestConclude(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "roles"}, "r", errors.New("newer"))
	before := tokens.Ready("c1", "a", "old")
	for sentence, tc := range map[string]struct {
		plan   plan
		done   result
		status metav1.ConditionStatus
		says   string
	}{
		"all is there": {
			plan{intent: intentKeep}, result{uid: "new"}, metav1.ConditionTrue, "ServiceAccount c1/a-agent (UID: new) is ready",
		},
		"False becomes True when it works again": {
			plan{intent: intentKeep}, result{uid: "old"}, metav1.ConditionTrue, "ServiceAccount c1/a-agent (UID: old) is ready",
		},
		"something failed": {
			plan{intent: intentKeep}, result{err: errors.New("boom")}, metav1.ConditionFalse,
			"Failed to apply token infrastructure: boom",
		},
		"a name is taken": {
			plan{intent: intentKeep}, result{err: errors.Join(&takenError{wanted(key, nil, "")[0]})}, metav1.ConditionFalse,
			"Failed to apply token infrastructure: ServiceAccount c1/a-agent exists already and is not ours, so it is left " +
				"alone; delete it, or hand it over by labelling it addon.open-cluster-management.io/name=<name of the add-on> " +
				"and addon.open-cluster-management.io/token-infrastructure=true",
		},
		"the cluster is not accepted": {
			plan{intent: intentRefuse, why: "no"}, result{}, metav1.ConditionFalse, "Failed to apply token infrastructure: no",
		},
		"a lost race says nothing": {
			plan{intent: intentKeep}, result{err: conflict}, metav1.ConditionTrue, before.Message,
		},
		"an add-on that leaves keeps what it says": {plan{}, result{}, metav1.ConditionTrue, before.Message},
		"what was removed says nothing any more":   {plan{intent: intentRemove}, result{}, "", ""},
		"what could not be removed still says it": {
			plan{intent: intentRemove}, result{err: errors.New("boom")}, metav1.ConditionTrue, before.Message,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{now: now, key: key, addOn: addOn(kube(tokens.Driver))}
			f.addOn.Status.Conditions = []metav1.Condition{*before.DeepCopy()}
			after := conclude(f, tc.plan, tc.done)
			c := meta.FindStatusCondition(after.Status.Conditions, tokens.ConditionInfrastructure)
			if tc.status == "" {
				assert.Nil(t, c)
				return
			}
			require.NotNil(t, c)
			assert.Equal(t, tc.status, c.Status)
			assert.Equal(t, tc.says, c.Message)
			assert.Equal(t, before.Message, f.addOn.Status.Conditions[0].Message, "the facts are not changed")
		})
	}
}

func TestANewGenerationAloneIsNoReasonToWrite(t *testing.T) {
	f := facts{now: now, key: key, addOn: addOn(kube(tokens.Driver))}
	f.addOn = conclude(f, plan{intent: intentKeep}, result{uid: "u"})
	f.addOn.Generation, f.now = 5, now.Add(time.Hour)
	assert.Equal(t, f.addOn.Status, conclude(f, plan{intent: intentKeep}, result{uid: "u"}).Status)
}

func TestSettle(t *testing.T) {
	f := facts{now: now}
	assert.Equal(t, reconcile.ClassDone, outcomeOf(f, result{}).Class())
	taken := outcomeOf(f, result{err: errors.Join(&takenError{wanted(key, nil, "")[0]})})
	assert.Equal(t, reconcile.ClassWaiting, taken.Class())
	assert.Equal(t, now.Add(takenRetry), taken.Wake(), "objects of others are not watched")
	assert.Equal(t, reconcile.ClassRetry, outcomeOf(f, result{err: errors.New("boom")}).Class())
}

// Shows: registration/infrastructure-goes-with-add-on
func TestTheInfrastructureStaysWhileAHookRuns(t *testing.T) {
	for sentence, tc := range map[string]struct {
		finalizers []string
		want       bool
	}{
		"a hook on the cluster":                {[]string{"addon.open-cluster-management.io/addon-pre-delete"}, true},
		"a hook on the hosting cluster":        {[]string{"addon.open-cluster-management.io/hosting-addon-pre-delete"}, true},
		"a hook of an older manager":           {[]string{"cluster.open-cluster-management.io/addon-pre-delete"}, true},
		"a hosted hook of an older manager":    {[]string{"cluster.open-cluster-management.io/hosting-addon-pre-delete"}, true},
		"a finalizer of the author":            {[]string{"example.com/backup"}, true},
		"works on the hosting cluster only":    {[]string{"addon.open-cluster-management.io/hosting-manifests-cleanup"}, false},
		"deletion in the foreground only":      {[]string{"foregroundDeletion"}, false},
		"a hook beside works on another":       {[]string{"addon.open-cluster-management.io/hosting-manifests-cleanup", "addon.open-cluster-management.io/addon-pre-delete"}, true},
		"no finalizer":                         {nil, false},
		"works of an older manager, elsewhere": {[]string{"cluster.open-cluster-management.io/hosting-manifests-cleanup"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := addOn(kube(tokens.Driver))
			a.Finalizers = tc.finalizers
			assert.False(t, addonapi.HookRuns(a), "an add-on that is not being deleted has no hook that runs")
			a.DeletionTimestamp = &metav1.Time{Time: now}
			assert.Equal(t, tc.want, addonapi.HookRuns(a))
			p := decide(facts{now: now, key: key, addOn: a, accepted: true, have: built(addOn())})
			assert.Equal(t, tc.want, len(p.steps) == 0)
		})
	}
}
