package executor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
)

// A change of RBAC costs reviews of the objects that it may concern and no others. The figure in docs/adr/0009 is for
// 200 works with 10 objects each.
func TestWhatAChangeOfRBACCosts(t *testing.T) {
	const works, objects = 200, 10
	api := &fakeReviews{allowed: allow(VerbsOwn)}
	a := newTest(t, api)
	edit := rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}
	owner := func(namespace string) ServiceAccount { return ServiceAccount{Namespace: namespace, Name: "deployer"} }
	bindingFor := func(namespace, account string) *binding {
		b := bindingOf(edit, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account}}, namespace)
		return &b
	}
	// Each work has a namespace, and each namespace has an executor that is bound there.
	for i := range works {
		namespace := fmt.Sprint("team-", i)
		a.rbac.setBinding(bindingKey{Namespace: namespace, Name: "b"}, bindingFor(namespace, "deployer"))
	}
	pass := func(after time.Duration) int {
		before := len(api.asked)
		for i := range works {
			namespace := fmt.Sprint("team-", i)
			var questions []Question
			for n := range objects {
				q := configMap(fmt.Sprint("x-", n), VerbsOwn)
				q.Object.Namespace = namespace
				questions = append(questions, q)
			}
			a.Begin(namespace, owner(namespace), noon.Add(after)).Decide(t.Context(), questions)
		}
		return len(api.asked) - before
	}
	const all = works * objects * 5
	assert.Equal(t, all, pass(0))
	// All changes happen at noon, which is long past in these passes, so that no review is repeated for being too early.
	assert.Equal(t, all, pass(4*time.Minute))
	for _, c := range []struct {
		name   string
		change func()
		want   int
	}{
		{"a new binding of somebody else", func() {
			a.rbac.setBinding(bindingKey{Namespace: "team-0", Name: "c"}, bindingFor("team-0", "app"))
		}, 0},
		{"a role that no executor is bound to", func() { a.rbac.roleChanged(roleKey{Name: "aggregate-to-view"}) }, 0},
		{"another binding of one executor in its namespace", func() {
			a.rbac.setBinding(bindingKey{Namespace: "team-0", Name: "d"}, bindingFor("team-0", "deployer"))
		}, all / works},
		{"a binding of one executor elsewhere", func() {
			b := bindingOf(edit, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "team-0", Name: "deployer"}}, "other")
			a.rbac.setBinding(bindingKey{Namespace: "other", Name: "e"}, &b)
		}, 0},
		{"the role that all executors are bound to", func() { a.rbac.roleChanged(roleKey{Name: "edit"}) }, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Zero(t, pass(4*time.Minute))
			c.change()
			assert.Equal(t, c.want, pass(4*time.Minute))
		})
	}
}
