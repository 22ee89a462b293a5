package neighbours

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	quarryName = "quarry"
	// quarryObjects is how many objects the add-on has.
	quarryObjects = 20
)

//go:embed addons/quarry.yaml
var quarryYAML string

// quarry enables add-on quarry and removes it.
func (p *play) quarry(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	if err := hasKey(ctx, s); err != nil {
		return err
	}
	before, err := f.Managed().Snapshot(ctx)
	if err != nil {
		return err
	}
	objects, err := objectsOf(f, quarryYAML)
	if err != nil {
		return err
	}
	s.Cleanup("delete the add-on", func(ctx context.Context) error { return suite.Delete(ctx, f.Hub(), objects) })
	started := time.Now()
	if err := suite.Apply(ctx, f.Hub(), objects); err != nil {
		return err
	}
	if err := f.WaitAddOn(ctx, clusterName, quarryName); err != nil {
		return err
	}
	s.Note("available %.1f s after it was created", time.Since(started).Seconds())
	if err := quarryIsWhole(ctx, f); err != nil {
		return err
	}
	started = time.Now()
	if err := suite.Delete(ctx, f.Hub(), objects); err != nil {
		return err
	}
	if err := asBefore(ctx, s, suite.Managed, before); err != nil {
		return err
	}
	s.Note("gone %.1f s after it was deleted", time.Since(started).Seconds())
	return nil
}

// hasKey applies a work, and waits until the agent has the key of its copies, which comes with the first work and
// stays.
func hasKey(ctx context.Context, s *suite.Session) error {
	if err := s.ApplyWork(ctx, clusterName, "before-quarry"); err != nil {
		return err
	}
	return cluster.Until(ctx, "the key of the copies of works", func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: names.NamespaceAgent, Name: names.SecretWorkCache}
		return s.Fleet.Managed().Client.Get(ctx, key, &corev1.Secret{})
	})
}

// quarryIsWhole checks that all objects were applied, and that all pods run.
func quarryIsWhole(ctx context.Context, f *suite.Fleet) error {
	var works workv1.ManifestWorkList
	label := client.MatchingLabels{"open-cluster-management.io/addon-name": quarryName}
	if err := f.Hub().Client.List(ctx, &works, label, client.InNamespace(clusterName)); err != nil {
		return fmt.Errorf("listing the works of the add-on: %w", err)
	}
	applied := 0
	for _, work := range works.Items {
		for _, manifest := range work.Status.ResourceStatus.Manifests {
			if err := suite.IsTrue(manifest.Conditions, workv1.ManifestApplied); err != nil {
				return fmt.Errorf("manifest %s %s: %w", manifest.ResourceMeta.Kind, manifest.ResourceMeta.Name, err)
			}
			applied++
		}
	}
	if applied != quarryObjects {
		return fmt.Errorf("%d objects were applied and not %d", applied, quarryObjects)
	}
	var found appsv1.DaemonSet
	if err := f.Managed().Client.Get(ctx, client.ObjectKey{Namespace: quarryName, Name: quarryName}, &found); err != nil {
		return fmt.Errorf("reading the DaemonSet: %w", err)
	}
	if ready := found.Status.NumberReady; ready == 0 || ready != found.Status.DesiredNumberScheduled {
		return fmt.Errorf("%d of %d pods are ready", ready, found.Status.DesiredNumberScheduled)
	}
	return nil
}
