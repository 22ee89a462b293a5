package neighbours

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const lanternName = "lantern"

//go:embed addons/lantern.yaml
var lanternYAML string

// lantern enables a hosted add-on without a name of its hosting cluster, for a cluster whose agents report it, and
// removes the add-on.
func (p *play) lantern(ctx context.Context, s *suite.Session, d suite.DropIn) error {
	f := s.Fleet
	objects, err := objectsOf(f, lanternYAML, "HOST", d.Namespace)
	if err != nil {
		return err
	}
	s.Cleanup("delete the add-on", func(ctx context.Context) error {
		return errors.Join(suite.Delete(ctx, f.Hub(), objects), inYard(ctx, f, d.Cluster, "null", "null"))
	})
	if err := inYard(ctx, f, d.Cluster, `"yard"`, `"`+d.Cluster+`"`); err != nil {
		return err
	}
	started := time.Now()
	if err := suite.Apply(ctx, f.Hub(), objects); err != nil {
		return err
	}
	if err := f.WaitAddOn(ctx, d.Cluster, lanternName); err != nil {
		return err
	}
	s.Note("the hosted add-on was available after %.1f s", time.Since(started).Seconds())
	if err := lanternIsHosted(ctx, f, d); err != nil {
		return err
	}
	addOn, err := f.AddOn(ctx, d.Cluster, lanternName)
	if err != nil {
		return fmt.Errorf("reading the add-on: %w", err)
	}
	if err := f.Hub().Client.Delete(ctx, addOn); err != nil {
		return fmt.Errorf("deleting the add-on: %w", err)
	}
	return cluster.Until(ctx, "the add-on to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := d.On.Client.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels{"app": lanternName})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "lantern-hub-kubeconfig"}}
		return errors.Join(err, suite.Gone(ctx, d.On, secret), suite.Gone(ctx, f.Managed(), lanternAccess()))
	})
}

// inYard puts the hub and a managed cluster into a ManagedClusterSet, and lets the hub host add-ons of some clusters.
// The values are JSON.
func inYard(ctx context.Context, f *suite.Fleet, name, set, hosts string) error {
	for _, cluster := range []string{homeName, name} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		patch := client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":%s}}}`, set))
		if err := client.IgnoreNotFound(f.Hub().Client.Patch(ctx, mc, patch)); err != nil {
			return fmt.Errorf("moving cluster %s: %w", cluster, err)
		}
	}
	home := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: homeName}}
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"addon.spokelet.io/hosts":%s}}}`, hosts))
	if err := f.Hub().Client.Patch(ctx, home, patch); err != nil {
		return fmt.Errorf("letting cluster %s host: %w", homeName, err)
	}
	return nil
}

// lanternIsHosted checks that the hub named the hosting cluster, and that each side has its part.
func lanternIsHosted(ctx context.Context, f *suite.Fleet, d suite.DropIn) error {
	addOn, err := f.AddOn(ctx, d.Cluster, lanternName)
	if err != nil {
		return fmt.Errorf("reading the add-on: %w", err)
	}
	for annotation, want := range map[string]string{
		"addon.open-cluster-management.io/hosting-cluster-name":            homeName,
		"addon.open-cluster-management.io/hosting-cluster-name-managed-by": "auto-discovery",
	} {
		if has := addOn.Annotations[annotation]; has != want {
			return fmt.Errorf("annotation %s is %q and not %q", annotation, has, want)
		}
	}
	pod, err := suite.Pod(ctx, d.On, d.Namespace, lanternName)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == "lantern-hub-kubeconfig"
	}) {
		return fmt.Errorf("pod %s does not mount the credential of the add-on", pod.Name)
	}
	if err := f.Managed().Client.Get(ctx, client.ObjectKeyFromObject(lanternAccess()), lanternAccess()); err != nil {
		return fmt.Errorf("the managed cluster must have its part: %w", err)
	}
	return suite.Gone(ctx, d.On, lanternAccess())
}

// lanternAccess is the part of the add-on that is on the managed cluster.
func lanternAccess() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lantern-access"}}
}
