package neighbours

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	crewName = "crew"
	// crewQuiet keeps the manager from writing condition ManifestApplied.
	crewQuiet = "crew.example.com/quiet"
)

//go:embed addons/crew.yaml
var crewYAML string

// crewRuns installs the manager of add-on crew and enables the add-on. At first the manager does not write
// ManifestApplied.
func (p *play) crewRuns(ctx context.Context, s *suite.Session) error {
	hub := s.Fleet.Hub()
	objects, err := objectsOf(s.Fleet, crewYAML)
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, hub, objects); err != nil {
		return err
	}
	if err := suite.WaitDeployment(ctx, hub, crewName, "crew-manager"); err != nil {
		return err
	}
	addOn := crewAddOn()
	addOn.Annotations = map[string]string{crewQuiet: ""}
	started := time.Now()
	if err := hub.Client.Create(ctx, addOn); err != nil {
		return fmt.Errorf("creating the add-on: %w", err)
	}
	if err := crewSaid(ctx, s.Fleet, "at", "work"); err != nil {
		return err
	}
	err = cluster.Until(ctx, "the add-on to be available", func(ctx context.Context) error {
		return crewIsWhole(ctx, s.Fleet, false)
	})
	if err != nil {
		return err
	}
	s.Note("available %.1f s after it was created", time.Since(started).Seconds())
	loud := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, crewQuiet))
	if err := hub.Client.Patch(ctx, crewAddOn(), loud); err != nil {
		return fmt.Errorf("letting the manager write ManifestApplied: %w", err)
	}
	err = cluster.Until(ctx, "the conditions of the manager", func(ctx context.Context) error {
		return crewIsWhole(ctx, s.Fleet, true)
	})
	if err != nil {
		return err
	}
	return s.Fleet.WaitAddOn(ctx, clusterName, crewName)
}

func crewAddOn() *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: crewName}}
}

// crewSaid waits for a word of an agent of the crew, who must be known on the hub as its manager registered it.
func crewSaid(ctx context.Context, f *suite.Fleet, key, word string) error {
	return cluster.Until(ctx, "the crew to say "+word, func(ctx context.Context) error {
		var record corev1.ConfigMap
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: crewName}, &record); err != nil {
			return err
		}
		if record.Data[key] != word || record.Data["user"] != "crew:"+clusterName {
			return fmt.Errorf("its record has %v", record.Data)
		}
		return nil
	})
}

// crewIsWhole checks that what the manager wrote stays: its finalizers, its registration, its work, and its
// conditions. An add-on whose manager does not write ManifestApplied waits for that, in Progressing, as with OCM.
func crewIsWhole(ctx context.Context, f *suite.Fleet, loud bool) error {
	addOn, err := f.AddOn(ctx, clusterName, crewName)
	if err != nil {
		return fmt.Errorf("reading the add-on: %w", err)
	}
	for _, finalizer := range []string{"addon.open-cluster-management.io/addon-pre-delete", "crew.example.com/cleanup"} {
		if !slices.Contains(addOn.Finalizers, finalizer) {
			return fmt.Errorf("the add-on has finalizers %v", addOn.Finalizers)
		}
	}
	if err := suite.IsTrue(addOn.Status.Conditions, "Available"); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(addOn.Status.Conditions, "ManifestApplied"); (c != nil) != loud {
		return fmt.Errorf("condition ManifestApplied is the manager's, and it is %v", c)
	}
	progressing := meta.FindStatusCondition(addOn.Status.Conditions, "Progressing")
	if !loud && (progressing == nil || progressing.Reason != "WaitingForManifestApplied") {
		return fmt.Errorf("condition Progressing is %v", progressing)
	}
	registrations := addOn.Status.Registrations
	if len(registrations) != 1 || registrations[0].KubeClient == nil ||
		registrations[0].KubeClient.Subject.User != "crew:"+clusterName {
		return fmt.Errorf("the add-on has registrations %+v", registrations)
	}
	var works workv1.ManifestWorkList
	label := client.MatchingLabels{"open-cluster-management.io/addon-name": crewName}
	if err := f.Hub().Client.List(ctx, &works, label); err != nil {
		return fmt.Errorf("listing the works of the add-on: %w", err)
	}
	if len(works.Items) != 1 || works.Items[0].Name != "addon-crew-deploy-0" {
		return fmt.Errorf("the add-on has %d works, and not its one", len(works.Items))
	}
	return nil
}

// crewGoes deletes the add-on, and then its manager.
func (p *play) crewGoes(ctx context.Context, s *suite.Session) error {
	hub, managed := s.Fleet.Hub(), s.Fleet.Managed()
	started := time.Now()
	if err := hub.Client.Delete(ctx, crewAddOn()); err != nil {
		return fmt.Errorf("deleting the add-on: %w", err)
	}
	if err := crewSaid(ctx, s.Fleet, "said", "goodbye"); err != nil {
		return err
	}
	err := cluster.Until(ctx, "the add-on to be gone", func(ctx context.Context) error {
		in := metav1.ObjectMeta{Namespace: clusterName}
		work, hook, binding := in.DeepCopy(), in.DeepCopy(), in.DeepCopy()
		work.Name, hook.Name, binding.Name = "addon-crew-deploy-0", "addon-crew-pre-delete", "crew-agent"
		return errors.Join(
			suite.Gone(ctx, hub, crewAddOn()),
			suite.Gone(ctx, hub, &workv1.ManifestWork{ObjectMeta: *work}),
			suite.Gone(ctx, hub, &workv1.ManifestWork{ObjectMeta: *hook}),
			suite.Gone(ctx, hub, &rbacv1.RoleBinding{ObjectMeta: *binding}),
			suite.Gone(ctx, hub, &corev1.ConfigMap{ObjectMeta: ofCrew("crew-" + clusterName)}),
			suite.Gone(ctx, managed, &batchv1.Job{ObjectMeta: ofCrew("crew-goodbye")}),
			suite.Gone(ctx, managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crewName}}),
		)
	})
	if err != nil {
		return err
	}
	s.Note("gone %.1f s after it was deleted", time.Since(started).Seconds())
	objects, err := objectsOf(s.Fleet, crewYAML)
	if err != nil {
		return err
	}
	return suite.Delete(ctx, hub, objects)
}

// ofCrew names an object in the namespace of the add-on.
func ofCrew(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: crewName, Name: name} }
