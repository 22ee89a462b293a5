package twoclusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// worksNamespace is where the objects of works go.
const worksNamespace = "default"

// workRef is a work with one ConfigMap of the same name.
type workRef struct{ name string }

func (w workRef) key() client.ObjectKey {
	return client.ObjectKey{Namespace: worksNamespace, Name: w.name}
}

// manifestWork returns a work with ConfigMaps, of which the first has the name of the work.
func manifestWork(name, text string, configMaps int) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: name}}
	for i := range configMaps {
		object := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: worksNamespace, Name: name},
			Data:       map[string]string{"text": text},
		}
		if i > 0 {
			object.Name = fmt.Sprintf("%s-%d", name, i)
		}
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding a manifest: %w", err)
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return work, nil
}

// createWork creates a work and waits until it is applied. It goes with the scenario.
func createWork(ctx context.Context, s *suite.Session, name string) (workRef, error) {
	w := workRef{name: name}
	work, err := manifestWork(name, "first", 1)
	if err != nil {
		return w, err
	}
	s.Cleanup("delete work "+name, func(ctx context.Context) error {
		if err := client.IgnoreNotFound(s.Fleet.Hub().Client.Delete(ctx, work)); err != nil {
			return err
		}
		return cluster.Until(ctx, "the work to be gone", func(ctx context.Context) error {
			return suite.Gone(ctx, s.Fleet.Hub(), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
				Namespace: clusterName, Name: name,
			}})
		})
	})
	if err := s.Fleet.Hub().Client.Create(ctx, work); err != nil {
		return w, fmt.Errorf("creating work %s: %w", name, err)
	}
	return w, waitContent(ctx, s.Fleet, w, "first")
}

// changeWork changes the text in the ConfigMap of a work.
func changeWork(ctx context.Context, f *suite.Fleet, w workRef, text string) error {
	changed, err := manifestWork(w.name, text, 1)
	if err != nil {
		return err
	}
	var work workv1.ManifestWork
	if err := f.Hub().Client.Get(ctx, client.ObjectKeyFromObject(changed), &work); err != nil {
		return fmt.Errorf("reading work %s: %w", w.name, err)
	}
	work.Spec.Workload = changed.Spec.Workload
	if err := f.Hub().Client.Update(ctx, &work); err != nil {
		return fmt.Errorf("changing work %s: %w", w.name, err)
	}
	return nil
}

// waitContent waits until the ConfigMap of a work has a text.
func waitContent(ctx context.Context, f *suite.Fleet, w workRef, text string) error {
	return cluster.Until(ctx, "work "+w.name+" to be applied", func(ctx context.Context) error {
		var found corev1.ConfigMap
		if err := f.Managed().Client.Get(ctx, w.key(), &found); err != nil {
			return err
		}
		if found.Data["text"] != text {
			return fmt.Errorf("the ConfigMap has %q", found.Data["text"])
		}
		return nil
	})
}

// repair deletes the ConfigMap of a work on the managed cluster and returns how long the agent takes to create it
// again.
func repair(ctx context.Context, s *suite.Session, w workRef) (time.Duration, error) {
	managed := s.Fleet.Managed().Client
	var before corev1.ConfigMap
	if err := managed.Get(ctx, w.key(), &before); err != nil {
		return 0, fmt.Errorf("reading the ConfigMap of work %s: %w", w.name, err)
	}
	started := time.Now()
	if err := managed.Delete(ctx, &before); err != nil {
		return 0, fmt.Errorf("deleting the ConfigMap of work %s: %w", w.name, err)
	}
	err := cluster.Until(ctx, "the agent to create the ConfigMap again", func(ctx context.Context) error {
		var after corev1.ConfigMap
		if err := managed.Get(ctx, w.key(), &after); err != nil {
			return err
		}
		if after.UID == before.UID {
			return errors.New("the old one is there")
		}
		return nil
	})
	return time.Since(started), err
}
