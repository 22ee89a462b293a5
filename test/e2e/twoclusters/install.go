package twoclusters

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// install installs both sides.
func (p *play) install(ctx context.Context, s *suite.Session) error {
	for _, role := range []suite.Role{suite.Hub, suite.Managed} {
		snapshot, err := s.Fleet.Cluster(role).Snapshot(ctx)
		if err != nil {
			return err
		}
		p.before[role] = snapshot
	}
	if err := s.Fleet.InstallHub(ctx, s.Fleet.Images().Tag); err != nil {
		return err
	}
	if err := s.Fleet.InstallAgent(ctx, clusterName, s.Fleet.Images().Tag); err != nil {
		return err
	}
	return cluster.Until(ctx, "the agent to run", func(ctx context.Context) error {
		pod, err := suite.Pod(ctx, s.Fleet.Managed(), names.NamespaceAgent, suite.Agent)
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its pod is %s", pod.Status.Phase)
		}
		return nil
	})
}

// join accepts the cluster. Until then the agent reports in its readiness what it waits for.
func (p *play) join(ctx context.Context, s *suite.Session) error {
	hub, managed := s.Fleet.Hub(), s.Fleet.Managed()
	err := cluster.Until(ctx, "ManagedCluster "+clusterName, func(ctx context.Context) error {
		return hub.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &clusterv1.ManagedCluster{})
	})
	if err != nil {
		return err
	}
	pod, err := suite.Pod(ctx, managed, names.NamespaceAgent, suite.Agent)
	if err != nil {
		return err
	}
	if cluster.IsReady(pod) {
		return fmt.Errorf("pod %s is ready before anybody accepted its cluster", pod.Name)
	}
	if err := s.Fleet.Join(ctx, clusterName, nil); err != nil {
		return err
	}
	if err := suite.WaitDeployment(ctx, managed, names.NamespaceAgent, suite.Agent); err != nil {
		return err
	}
	if pod, err = suite.Pod(ctx, managed, names.NamespaceAgent, suite.Agent); err != nil {
		return err
	}
	if restarts := suite.Restarts(pod); restarts > 0 {
		return fmt.Errorf("pod %s was restarted %d times while it waited", pod.Name, restarts)
	}
	return nil
}

// upgrade moves both sides to another build.
func (p *play) upgrade(ctx context.Context, s *suite.Session) error {
	before, err := observeHello(ctx, s.Fleet)
	if err != nil {
		return err
	}
	requests, err := s.Fleet.Requests(ctx, clusterName)
	if err != nil {
		return err
	}
	next := s.Fleet.Images().NextTag
	if err := s.Fleet.InstallHub(ctx, next); err != nil {
		return err
	}
	if err := s.Fleet.InstallAgent(ctx, clusterName, next); err != nil {
		return err
	}
	if err := suite.WaitDeployment(ctx, s.Fleet.Managed(), names.NamespaceAgent, suite.Agent); err != nil {
		return err
	}
	for what, in := range map[string]struct {
		c              *cluster.Cluster
		namespace, app string
	}{
		"hub manager": {s.Fleet.Hub(), names.NamespaceHub, suite.HubManager},
		"agent":       {s.Fleet.Managed(), names.NamespaceAgent, suite.Agent},
	} {
		pod, err := suite.Pod(ctx, in.c, in.namespace, in.app)
		if err != nil {
			return err
		}
		if image := pod.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+next) {
			return fmt.Errorf("the %s runs image %s", what, image)
		}
	}
	if err := s.Fleet.WaitClusterAvailable(ctx, clusterName); err != nil {
		return err
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, helloName); err != nil {
		return err
	}
	if err := checkCopy(ctx, s, "after the upgrade"); err != nil {
		return err
	}
	after, err := observeHello(ctx, s.Fleet)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("the add-on was touched: its pod was %+v and is %+v", before, after)
	}
	now, err := s.Fleet.Requests(ctx, clusterName)
	if err == nil && now != requests {
		err = fmt.Errorf("%d certificates were requested by the upgrade", now-requests)
	}
	return err
}

// uninstall removes everything in the order of the documentation: add-ons, the cluster, the agent, the hub manager.
func (p *play) uninstall(ctx context.Context, s *suite.Session) error {
	hub, managed := s.Fleet.Hub(), s.Fleet.Managed()
	hello, err := helloObjects(s.Fleet)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, hub, hello); err != nil {
		return err
	}
	if err := waitNoAddOns(ctx, s.Fleet); err != nil {
		return err
	}
	// The namespace of a cluster stays for its administrator to delete.
	for _, left := range []*unstructured.Unstructured{
		object(clusterv1.GroupVersion.String(), "ManagedCluster", "", clusterName),
		object("v1", "Namespace", "", clusterName),
	} {
		if err := suite.Delete(ctx, hub, []*unstructured.Unstructured{left}); err != nil {
			return err
		}
	}
	tag := s.Fleet.Images().Tag
	agent, err := s.Fleet.AgentObjects(clusterName, tag)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, managed, agent); err != nil {
		return err
	}
	manager, err := s.Fleet.HubObjects(tag)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, hub, manager); err != nil {
		return err
	}
	var errs []error
	for _, role := range []suite.Role{suite.Hub, suite.Managed} {
		err := cluster.Until(ctx, "cluster "+string(role)+" to be as it was", func(ctx context.Context) error {
			after, err := s.Fleet.Cluster(role).Snapshot(ctx)
			if err != nil {
				return err
			}
			return p.before[role].Diff(after)
		})
		errs = append(errs, err)
		s.Note("%s: %d objects were compared", role, len(p.before[role]))
	}
	return errors.Join(errs...)
}

// waitNoAddOns waits until no add-on and no work is left on the hub, and no record of one on the managed cluster.
func waitNoAddOns(ctx context.Context, f *suite.Fleet) error {
	return cluster.Until(ctx, "all add-ons to be gone", func(ctx context.Context) error {
		var addOns addonv1beta1.ManagedClusterAddOnList
		var works workv1.ManifestWorkList
		var applied workv1.AppliedManifestWorkList
		err := errors.Join(f.Hub().Client.List(ctx, &addOns), f.Hub().Client.List(ctx, &works),
			f.Managed().Client.List(ctx, &applied))
		if left := len(addOns.Items) + len(works.Items) + len(applied.Items); err == nil && left > 0 {
			err = fmt.Errorf("%d ManagedClusterAddOns, %d ManifestWorks and %d AppliedManifestWorks are left",
				len(addOns.Items), len(works.Items), len(applied.Items))
		}
		return err
	})
}

// object returns an object without content, to delete or to look for.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
