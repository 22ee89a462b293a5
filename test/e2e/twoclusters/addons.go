package twoclusters

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	partsName  = "parts"
	partsJob   = "parts-goodbye"
	partsData  = "parts-data"
	brokenName = "broken"
)

//go:embed addons/parts.yaml
var partsYAML string

//go:embed addons/broken.yaml
var brokenYAML string

// partsObjects are those of the add-on parts.
func partsObjects(f *suite.Fleet) ([]*unstructured.Unstructured, error) {
	return suite.Decode([]byte(strings.ReplaceAll(partsYAML, "IMAGE", f.Images().Workload)))
}

// daemonSet enables the add-on parts, which two later scenarios remove.
func (p *play) daemonSet(ctx context.Context, s *suite.Session) error {
	objects, err := partsObjects(s.Fleet)
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, partsName); err != nil {
		return err
	}
	var found appsv1.DaemonSet
	if err := s.Fleet.Managed().Client.Get(ctx, agentKey(partsName), &found); err != nil {
		return fmt.Errorf("reading the DaemonSet: %w", err)
	}
	if status := found.Status; status.NumberReady == 0 || status.NumberReady != status.DesiredNumberScheduled {
		return fmt.Errorf("the add-on is available with %d of %d pods of its DaemonSet", status.NumberReady,
			status.DesiredNumberScheduled)
	}
	return nil
}

// preDeleteJob removes the add-on parts. Its Job is seen to run while the DaemonSet is there, and its Event tells that
// it completed.
func (p *play) preDeleteJob(ctx context.Context, s *suite.Session) error {
	managed := s.Fleet.Managed().Client
	if err := removeParts(ctx, s.Fleet); err != nil {
		return err
	}
	err := cluster.Until(ctx, "the Job to run", func(ctx context.Context) error {
		var job batchv1.Job
		if err := managed.Get(ctx, agentKey(partsJob), &job); err != nil {
			return err
		}
		if job.Status.Ready == nil || *job.Status.Ready == 0 {
			return errors.New("its pod is not ready")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := managed.Get(ctx, agentKey(partsName), &appsv1.DaemonSet{}); err != nil {
		return fmt.Errorf("the DaemonSet must be there while the Job runs: %w", err)
	}
	addOn, err := s.Fleet.AddOn(ctx, clusterName, partsName)
	if err != nil {
		return fmt.Errorf("the add-on must be there while the Job runs: %w", err)
	}
	if c := meta.FindStatusCondition(addOn.Status.Conditions, "addon.spokelet.io/Deleting"); c != nil {
		s.Note("%s: %s", c.Reason, c.Message)
	}
	if err := waitPartsGone(ctx, s.Fleet); err != nil {
		return err
	}
	return cluster.Until(ctx, "an Event that the Job completed", func(ctx context.Context) error {
		var events corev1.EventList
		if err := managed.List(ctx, &events, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Kind == "Job" && event.InvolvedObject.Name == partsJob && event.Reason == "Completed" {
				return nil
			}
		}
		return fmt.Errorf("%d Events, but not this one", len(events.Items))
	})
}

// removeParts deletes the add-on parts.
func removeParts(ctx context.Context, f *suite.Fleet) error {
	definition := object("addon.open-cluster-management.io/v1beta1", "ClusterManagementAddOn", "", partsName)
	if err := client.IgnoreNotFound(f.Hub().Client.Delete(ctx, definition)); err != nil {
		return fmt.Errorf("deleting ClusterManagementAddOn %s: %w", partsName, err)
	}
	return nil
}

// waitPartsGone waits until nothing is left of the add-on parts but what stays.
func waitPartsGone(ctx context.Context, f *suite.Fleet) error {
	return cluster.Until(ctx, "the add-on to be gone", func(ctx context.Context) error {
		return errors.Join(
			suite.Gone(ctx, f.Hub(), object("addon.open-cluster-management.io/v1beta1", "ManagedClusterAddOn", clusterName,
				partsName)),
			suite.Gone(ctx, f.Managed(), object("apps/v1", "DaemonSet", names.NamespaceAgentAddon, partsName)),
			suite.Gone(ctx, f.Managed(), object("batch/v1", "Job", names.NamespaceAgentAddon, partsJob)),
		)
	})
}

// orphan checks what the add-on parts left.
func (p *play) orphan(ctx context.Context, s *suite.Session) error {
	var data corev1.ConfigMap
	managed := s.Fleet.Managed().Client
	s.Cleanup("delete what stayed", func(ctx context.Context) error {
		template := object("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", "", partsName)
		left := object("v1", "ConfigMap", names.NamespaceAgentAddon, partsData)
		return errors.Join(suite.Delete(ctx, s.Fleet.Hub(), []*unstructured.Unstructured{template}),
			suite.Delete(ctx, s.Fleet.Managed(), []*unstructured.Unstructured{left}))
	})
	if err := managed.Get(ctx, agentKey(partsData), &data); err != nil {
		return fmt.Errorf("reading the ConfigMap that is to stay: %w", err)
	}
	if data.DeletionTimestamp != nil || len(data.OwnerReferences) > 0 || data.Data["precious"] != "yes" {
		return fmt.Errorf("the ConfigMap that is to stay is %+v", data)
	}
	return nil
}

// imagePull enables an add-on whose image does not exist.
func (p *play) imagePull(ctx context.Context, s *suite.Session) error {
	const missing = "spokelet/missing:v1"
	return playBroken(ctx, s, missing, "run", missing, "ImagePull")
}

// crashLoop enables an add-on whose program fails.
func (p *play) crashLoop(ctx context.Context, s *suite.Session) error {
	const why = "no such station"
	return playBroken(ctx, s, s.Fleet.Images().Workload, `fail, "`+why+`"`, "crashes again and again", "exit code 1", why)
}

// playBroken enables the add-on broken, waits until its condition Available has some words, and removes it.
func playBroken(ctx context.Context, s *suite.Session, image, args string, words ...string) error {
	text := strings.ReplaceAll(strings.ReplaceAll(brokenYAML, "IMAGE", image), "ARGS", args)
	objects, err := suite.Decode([]byte(text))
	if err != nil {
		return err
	}
	s.Cleanup("remove the add-on", func(ctx context.Context) error { return removeBroken(ctx, s.Fleet, objects) })
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	started := time.Now()
	return cluster.Until(ctx, "the condition to tell the cause", func(ctx context.Context) error {
		addOn, err := s.Fleet.AddOn(ctx, clusterName, brokenName)
		if err != nil {
			return err
		}
		available := meta.FindStatusCondition(addOn.Status.Conditions, "Available")
		if available == nil {
			return errors.New("there is no condition Available")
		}
		if available.Status == metav1.ConditionTrue {
			return fmt.Errorf("the add-on is available: %s", available.Message)
		}
		for _, word := range words {
			if !strings.Contains(available.Message, word) {
				return fmt.Errorf("%q does not have %q", available.Message, word)
			}
		}
		s.Note("after %.1f s: %s", time.Since(started).Seconds(), available.Message)
		return nil
	})
}

// removeBroken removes the add-on broken and waits until its Deployment is gone.
func removeBroken(ctx context.Context, f *suite.Fleet, objects []*unstructured.Unstructured) error {
	if err := suite.Delete(ctx, f.Hub(), objects); err != nil {
		return err
	}
	left := object("apps/v1", "Deployment", names.NamespaceAgentAddon, brokenName)
	return cluster.Until(ctx, "the Deployment to be gone", func(ctx context.Context) error {
		return suite.Gone(ctx, f.Managed(), left)
	})
}

// agentKey is the key of an object beside the agents of add-ons.
func agentKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: name}
}
