package storm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// lastWork is the work that the agent applies when the hub manager is uninstalled, and its object.
const lastWork = "farewell"

// uninstall takes the hub manager away as its uninstaller does, and reports what goes with it that must stay, and what
// stays that only it used. The hub has no certificate of the hub manager, so there is none to remove.
func (s *storm) uninstall(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("gave up after %s", s.Patience))
	defer cancel()
	s.honest()
	err := s.fleet.UninstallHub(ctx)
	if err == nil {
		err = errors.Join(s.nothingOurs(ctx), s.goesOn(ctx))
	}
	if err != nil {
		s.report.Violations = append(s.report.Violations, fmt.Sprintf("seed %d, hub manager uninstalled: %v", s.Seed, err))
	}
}

// nothingOurs reports what is left that only the hub manager uses.
func (s *storm) nothingOurs(ctx context.Context) error {
	var left []string
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		var all metav1.PartialObjectMetadataList
		all.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := s.hub.List(ctx, &all); err != nil {
			return fmt.Errorf("listing what may be left of the hub manager: %w", err)
		}
		for _, o := range all.Items {
			if strings.HasPrefix(o.Name, "open-cluster-management:spokelet-hub") {
				left = append(left, kind+" "+o.Name)
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left of the hub manager: %s", strings.Join(left, ", "))
	}
	return nil
}

// goesOn reports whether the cluster is still one of the hub, and its agent applies a work and takes it away again.
func (s *storm) goesOn(ctx context.Context) error {
	var cluster clusterv1.ManagedCluster
	if err := s.hub.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	if cluster.DeletionTimestamp != nil || !cluster.Spec.HubAcceptsClient {
		return fmt.Errorf("the cluster is not as it was: deleted at %s, accepted is %t", cluster.DeletionTimestamp,
			cluster.Spec.HubAcceptsClient)
	}
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: storage()[0], Name: lastWork},
	}
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: lastWork},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
			Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Object: object}}},
		}},
	}
	if err := s.hub.Create(ctx, work); err != nil {
		return fmt.Errorf("creating work %s: %w", lastWork, err)
	}
	key := client.ObjectKeyFromObject(object)
	err := fleet.Wait(ctx, "the agent to apply a work", nil, func(ctx context.Context) error {
		return s.spoke.Get(ctx, key, &corev1.ConfigMap{})
	})
	if err != nil {
		return err
	}
	if err := s.hub.Delete(ctx, work); err != nil {
		return fmt.Errorf("deleting work %s: %w", lastWork, err)
	}
	return fleet.Wait(ctx, "the agent to take a work away", nil, func(ctx context.Context) error {
		return errors.Join(notThere(s.hub.Get(ctx, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})),
			notThere(s.spoke.Get(ctx, key, &corev1.ConfigMap{})))
	})
}

// notThere reports whether an answer says that an object does not exist.
func notThere(err error) error {
	if err == nil {
		return fleet.NotYet("it is there")
	}
	return client.IgnoreNotFound(err)
}
