package rights_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// manageNamespace has the hub manage a namespace of the cluster.
func (w *world) manageNamespace(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", own)}
	patch := `{"status":{"managedNamespaces":[{"name":"managed","clusterSet":"default"}]}}`
	err := w.HubClient.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil {
		return err
	}
	if err := w.onSpoke(ctx, "", "managed", &corev1.Namespace{}); err != nil {
		return err
	}
	err = w.HubClient.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"managedNamespaces":null}}`)))
	if err != nil {
		return err
	}
	return fleet.Wait(ctx, "the namespace to be managed no more", nil, func(ctx context.Context) error {
		var found corev1.Namespace
		if err := w.cluster.Client.Get(ctx, client.ObjectKey{Name: "managed"}, &found); err != nil {
			return err
		}
		for key, value := range found.Labels {
			if strings.HasPrefix(key, "clusterset.open-cluster-management.io/") && value == "false" {
				return nil
			}
		}
		return fleet.NotYet("labels %v", found.Labels)
	})
}

// work is a ManifestWork that is not written yet.
func (w *world) work(cluster, name string, manifests ...string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: in(cluster, name)}
	for _, manifest := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(manifest)},
		})
	}
	return work
}

func configMap(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{"k":"v"}}`,
		name, namespace)
}

// strategies are all ways to apply an object.
var strategies = []workv1.UpdateStrategyType{
	workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeServerSideApply,
	workv1.UpdateStrategyTypeReadOnly,
}

// everyWay is a work with one ConfigMap for each strategy.
func (w *world) everyWay(name, namespace string) *workv1.ManifestWork {
	work := w.work(own, name)
	for i, strategy := range strategies {
		one := fmt.Sprintf("%s-%d", name, i)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(configMap(namespace, one))},
		})
		work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: namespace, Name: one},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: strategy},
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
				{Name: "k", Path: ".data.k"},
			}}},
		})
	}
	return work
}

// applyWorks applies works by the agent and by an executor, which also hands out rights.
func (w *world) applyWorks(ctx context.Context) error {
	for _, name := range []string{"plain-3", "executed-3"} {
		// What is only read must be there.
		seen := &corev1.ConfigMap{ObjectMeta: in("apps", name)}
		if err := w.cluster.Client.Create(ctx, seen); err != nil {
			return err
		}
	}
	plain, executed := w.everyWay("plain", "apps"), w.everyWay("executed", "apps")
	role := workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"executed","namespace":"apps"},` +
			`"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`)}}
	executed.Spec.Workload.Manifests = append(executed.Spec.Workload.Manifests, role)
	executed.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "apps", Name: "deployer"},
	}}
	vanishing := w.work(own, "vanishing", configMap("apps", "vanishing"))
	for _, work := range []*workv1.ManifestWork{plain, executed, vanishing} {
		if err := w.HubClient.Create(ctx, work); err != nil {
			return err
		}
		if err := w.applied(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// applied waits until a work is applied.
func (w *world) applied(ctx context.Context, work *workv1.ManifestWork) error {
	return fleet.Wait(ctx, "work "+work.Name+" to be applied", nil, func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return fleet.NotYet("%v", work.Status)
		}
		return nil
	})
}

// removeWorks deletes a work, and has another one vanish without having been deleted in order.
func (w *world) removeWorks(ctx context.Context) error {
	executed := w.work(own, "executed")
	if err := w.HubClient.Delete(ctx, executed); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "the work of the executor to go", nil, func(ctx context.Context) error {
		return gone(w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "executed"}, &rbacv1.Role{}))
	}); err != nil {
		return err
	}
	// It vanishes while the agent is away.
	w.cluster.Agent.Stop(10 * time.Second)
	vanishing := w.work(own, "vanishing")
	if err := w.HubClient.Delete(ctx, vanishing); err != nil {
		return err
	}
	if err := w.patch(ctx, vanishing, `{"metadata":{"finalizers":null}}`); err != nil {
		return err
	}
	// Another one is deleted before the agent made anything of it.
	unmade := w.work(own, "unmade", configMap("apps", "unmade"))
	unmade.Finalizers = []string{names.FinalizerManifestWork}
	if err := errors.Join(w.HubClient.Create(ctx, unmade), w.HubClient.Delete(ctx, unmade)); err != nil {
		return err
	}
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := w.goes(ctx, unmade); err != nil {
		return err
	}
	return fleet.Wait(ctx, "what the work left behind to go", nil, func(ctx context.Context) error {
		return gone(w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "vanishing"}, &corev1.ConfigMap{}))
	})
}

// onSpoke waits until an object is on the cluster.
func (w *world) onSpoke(ctx context.Context, namespace, name string, object client.Object) error {
	return fleet.Wait(ctx, name+" on the cluster", nil, func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
}

// spokeHas waits until a ConfigMap on the cluster has a value.
func (w *world) spokeHas(ctx context.Context, namespace, name, key, value string) error {
	return fleet.Wait(ctx, "ConfigMap "+name, nil, func(ctx context.Context) error {
		var found corev1.ConfigMap
		if err := w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found); err != nil {
			return err
		}
		if found.Data[key] != value {
			return fleet.NotYet("%s is %q", key, found.Data[key])
		}
		return nil
	})
}
