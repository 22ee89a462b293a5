package policies

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// cluster is the cluster that is written, and addOn its add-on.
	cluster, addOn = "bench1", "bench"
	// values is how many conditions or values each status has.
	values = 10
)

// groupOfAgent is the group of the agent of the cluster.
var groupOfAgent = csr.ClusterGroup(cluster)

// write is one kind of write.
type write struct {
	name, user string
	groups     []string
	// send sends the write of a number, which differs from the one before it.
	send func(ctx context.Context, c client.Client, n int) error
}

// writes are the kinds of writes that a fleet sends most.
func (r *run) writes() []write {
	user := csr.ClusterUser(cluster, "agent")
	groups := []string{groupOfAgent, csr.GroupManagedClusters, "system:authenticated"}
	ofHub := []string{"system:serviceaccounts", "system:authenticated"}
	agent := func(name string, send func(context.Context, client.Client, int) error) write {
		return write{name: name, user: user, groups: groups, send: send}
	}
	hub := func(name string, send func(context.Context, client.Client, int) error) write {
		return write{name: name, user: manager, groups: ofHub, send: send}
	}
	in := metav1.ObjectMeta{Namespace: cluster, Name: addOn}
	own := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	return []write{
		agent("agent: status of its ManagedCluster", patchStatus(own, conditions)),
		agent("agent: status of an add-on", patchStatus(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in}, conditions)),
		agent("agent: status of a work", patchStatus(&workv1.ManifestWork{ObjectMeta: in}, feedback)),
		agent("agent: finalizer of a work", func(ctx context.Context, c client.Client, n int) error {
			return merge(ctx, c, &workv1.ManifestWork{ObjectMeta: in},
				fmt.Sprintf(`{"metadata":{"finalizers":["example.com/f%d"]}}`, n%2))
		}),
		agent("agent: a certificate request", request),
		hub("hub manager: spec of a work", func(ctx context.Context, c client.Client, n int) error {
			return merge(ctx, c, &workv1.ManifestWork{ObjectMeta: in},
				fmt.Sprintf(`{"spec":{"workload":{"manifests":[%s]}}}`, manifest(n)))
		}),
		hub("hub manager: annotation of an add-on", func(ctx context.Context, c client.Client, n int) error {
			return merge(ctx, c, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in},
				fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n%2))
		}),
		hub("hub manager: status of an add-on", patchStatus(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in}, conditions)),
		hub("hub manager: label of a cluster", func(ctx context.Context, c client.Client, n int) error {
			return merge(ctx, c, own,
				fmt.Sprintf(`{"metadata":{"labels":{"feature.open-cluster-management.io/addon-bench":"%d"}}}`, n%2))
		}),
	}
}

// objects are what is written.
func objects() []client.Object {
	in := metav1.ObjectMeta{Namespace: cluster, Name: addOn}
	work := &workv1.ManifestWork{ObjectMeta: in}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest(0))}}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: cluster, Labels: map[string]string{names.LabelClusterName: cluster},
		}},
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in}, work,
		&rbacv1.Role{ObjectMeta: in},
	}
}

// manifest is a ConfigMap as JSON.
func manifest(n int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"bench"},`+
		`"data":{"n":"%d"}}`, n%2)
}

func merge(ctx context.Context, c client.Client, object client.Object, patch string) error {
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", object)
	}
	return c.Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// patchStatus patches a status with what a function makes.
func patchStatus(object client.Object, status func(n int) string) func(context.Context, client.Client, int) error {
	return func(ctx context.Context, c client.Client, n int) error {
		copied, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", object)
		}
		return c.Status().Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status(n)+`}`)))
	}
}

// conditions is a status with conditions that change with the number.
func conditions(n int) string { return `{"conditions":` + list(n) + `}` }

// list is the JSON of conditions.
func list(n int) string {
	all := ""
	for i := range values {
		if i > 0 {
			all += ","
		}
		all += fmt.Sprintf(`{"type":"Bench%d","status":"True","reason":"Bench","message":"round %d",`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}`, i, n%2)
	}
	return "[" + all + "]"
}

// feedback is the status of a work with ten objects.
func feedback(n int) string {
	all := ""
	for i := range values {
		if i > 0 {
			all += ","
		}
		all += fmt.Sprintf(`{"resourceMeta":{"ordinal":%d,"kind":"ConfigMap","version":"v1","resource":"configmaps",`+
			`"name":"bench%d","namespace":"default"},"conditions":%s,`+
			`"statusFeedback":{"values":[{"name":"n","fieldValue":{"type":"Integer","integer":%d}}]}}`, i, i, list(n), n)
	}
	return `{"conditions":` + list(n) + `,"resourceStatus":{"manifests":[` + all + `]}}`
}

// request creates a certificate request as agents do.
func request(ctx context.Context, c client.Client, _ int) error {
	key, err := csr.NewKey()
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	object, err := csr.ForCluster(cluster, "agent").Build(key)
	if err != nil {
		return fmt.Errorf("building a request: %w", err)
	}
	return c.Create(ctx, object)
}
