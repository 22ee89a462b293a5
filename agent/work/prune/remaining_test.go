package prune

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/status"
)

// blockedThing is a ConfigMap that does not go.
func blockedThing(name string, since time.Time, finalizers ...string) Blocked {
	return Blocked{
		Entry: workv1.AppliedManifestResourceMeta{
			Version: "v1", ResourceIdentifier: workv1.ResourceIdentifier(manifest.ID{Resource: "configmaps", Namespace: "ns", Name: name}),
		},
		Since: since, Finalizers: finalizers,
	}
}

func TestDeletingNamesWhatItWaitsFor(t *testing.T) {
	refused := blockedThing("x", epoch)
	refused.Cause = "cannot be deleted: configmaps is forbidden"
	crowd := func(n int) []Blocked {
		var list []Blocked
		for i := range n {
			list = append(list, blockedThing(fmt.Sprintf("x%02d", i), time.Time{}))
		}
		return list
	}
	entries := func(names ...string) []workv1.AppliedManifestResourceMeta {
		var list []workv1.AppliedManifestResourceMeta
		for _, name := range names {
			list = append(list, blockedThing(name, epoch).Entry)
		}
		return list
	}
	for name, c := range map[string]struct {
		left     Remaining
		obstacle string
		want     string
	}{
		"nothing that is known": {want: ""},
		"an object that is going": {
			left: Remaining{Blocked: []Blocked{blockedThing("x", epoch)}},
			want: ": waiting for 1 object: configmaps ns/x (since 2026-01-02T03:04:05Z)",
		},
		"an object with a finalizer": {
			left: Remaining{Blocked: []Blocked{blockedThing("x", epoch, "f")}},
			want: ": waiting for 1 object: configmaps ns/x (finalizer f, since 2026-01-02T03:04:05Z)",
		},
		"several objects and finalizers": {
			left: Remaining{Blocked: []Blocked{blockedThing("x", epoch, "f", "g"), blockedThing("y", epoch.Add(time.Hour))}},
			want: ": waiting for 2 objects: configmaps ns/x (finalizers f, g, since 2026-01-02T03:04:05Z), " +
				"configmaps ns/y (since 2026-01-02T04:04:05Z)",
		},
		"an object that may not be deleted": {
			left: Remaining{Blocked: []Blocked{refused}},
			want: ": waiting for 1 object: configmaps ns/x (since 2026-01-02T03:04:05Z, " +
				"cannot be deleted: configmaps is forbidden)",
		},
		"others whose turn has not come": {
			left: Remaining{Blocked: []Blocked{blockedThing("x", time.Time{})}, Next: entries("a", "b")},
			want: ": waiting for 1 object: configmaps ns/x; deleted after that: configmaps ns/a, configmaps ns/b",
		},
		"more than anybody reads": {
			left: Remaining{Blocked: crowd(12), Next: entries("a", "b", "c", "d", "e", "f", "g")},
			want: ": waiting for 12 objects: configmaps ns/x00, configmaps ns/x01, configmaps ns/x02, configmaps ns/x03, " +
				"configmaps ns/x04, configmaps ns/x05, configmaps ns/x06, configmaps ns/x07, configmaps ns/x08, " +
				"configmaps ns/x09, and 2 more; deleted after that: configmaps ns/a, configmaps ns/b, configmaps ns/c, " +
				"configmaps ns/d, configmaps ns/e, and 2 more",
		},
		"a hub that keeps the work": {obstacle: "the hub refuses", want: ": the hub refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "ManifestWork is being deleted"+c.want, status.Deleting(Describe(c.left.Blocked), c.obstacle, c.left.Next).Message)
		})
	}
}

func TestDeletingIsNeverLongerThanTheAPITakes(t *testing.T) {
	long := strings.Repeat("n", 253)
	var left Remaining
	for range 1000 {
		h := blockedThing(long, epoch, long+"/a", long+"/b", long+"/c", long+"/d", long+"/e", long+"/f")
		h.Entry.Namespace, h.Cause = long, strings.Repeat("x", 5000)
		left.Blocked, left.Next = append(left.Blocked, h), append(left.Next, h.Entry)
	}
	assert.Less(t, len(status.Deleting(Describe(left.Blocked), "", left.Next).Message), 32768)
}

func TestANamespaceSaysWhatIsLeftInIt(t *testing.T) {
	condition := func(name, status string) any {
		return map[string]any{"type": name, "status": status, "message": "says " + name}
	}
	object := func(kind string, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "status": map[string]any{"conditions": conditions},
		}}
	}
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"nothing yet": {object("Namespace"), ""},
		"what is not so": {
			object("Namespace", condition("NamespaceContentRemaining", "False")), "",
		},
		"its content": {
			object("Namespace", condition("NamespaceContentRemaining", "True")), "says NamespaceContentRemaining",
		},
		"finalizers of its content say more": {
			object("Namespace", condition("NamespaceContentRemaining", "True"),
				condition("NamespaceFinalizersRemaining", "True")), "says NamespaceFinalizersRemaining",
		},
		"another kind means something else": {object("Pod", condition("NamespaceContentRemaining", "True")), ""},
		"conditions of another form":        {object("Namespace", "odd", int64(3)), ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, namespaceCause(c.live)) })
	}
}
