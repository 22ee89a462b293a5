package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
)

// worksNamespace is where the objects of works go.
const worksNamespace = "default"

// WorkObject returns the object of a work that CreateWork creates, which has its name.
func WorkObject(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: worksNamespace, Name: name},
	}
}

// CreateWork creates a work of a cluster with one ConfigMap. It goes with the scenario.
func (s *Session) CreateWork(ctx context.Context, clusterName, name string) error {
	raw, err := json.Marshal(WorkObject(name))
	if err != nil {
		return fmt.Errorf("encoding a manifest: %w", err)
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: name}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	s.Cleanup("delete work "+name, func(ctx context.Context) error {
		if err := client.IgnoreNotFound(s.Fleet.Hub().Client.Delete(ctx, work)); err != nil {
			return err
		}
		return cluster.Until(ctx, "the work to be gone", func(ctx context.Context) error {
			return Gone(ctx, s.Fleet.Hub(), &workv1.ManifestWork{ObjectMeta: work.ObjectMeta})
		})
	})
	if err := s.Fleet.Hub().Client.Create(ctx, work); err != nil {
		return fmt.Errorf("creating work %s: %w", name, err)
	}
	return nil
}

// WaitApplied waits until the hub reports that a work is available, and its ConfigMap is on the managed cluster.
func (f *Fleet) WaitApplied(ctx context.Context, clusterName, name string) error {
	return cluster.Until(ctx, "work "+name+" to be applied", func(ctx context.Context) error {
		var work workv1.ManifestWork
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: name}, &work); err != nil {
			return err
		}
		if err := IsTrue(work.Status.Conditions, workv1.WorkAvailable); err != nil {
			return err
		}
		return f.Managed().Client.Get(ctx, client.ObjectKeyFromObject(WorkObject(name)), &corev1.ConfigMap{})
	})
}

// ApplyWork does both.
func (s *Session) ApplyWork(ctx context.Context, clusterName, name string) error {
	if err := s.CreateWork(ctx, clusterName, name); err != nil {
		return err
	}
	return s.Fleet.WaitApplied(ctx, clusterName, name)
}

// RepairWork deletes the ConfigMap of a work on the managed cluster and returns how long the agent takes to create it
// again.
func (f *Fleet) RepairWork(ctx context.Context, name string) (time.Duration, error) {
	key := client.ObjectKeyFromObject(WorkObject(name))
	before, err := uidOf(ctx, f.Managed(), key)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if err := f.Managed().Client.Delete(ctx, WorkObject(name)); err != nil {
		return 0, fmt.Errorf("deleting the ConfigMap of work %s: %w", name, err)
	}
	err = cluster.Until(ctx, "the agent to create the ConfigMap again", func(ctx context.Context) error {
		after, err := uidOf(ctx, f.Managed(), key)
		if err == nil && after == before {
			err = errors.New("the old one is there")
		}
		return err
	})
	return time.Since(started), err
}

func uidOf(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) (types.UID, error) {
	var found corev1.ConfigMap
	if err := c.Client.Get(ctx, key, &found); err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return found.UID, nil
}
