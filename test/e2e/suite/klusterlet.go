package suite

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/klusterlet"
)

// DropIn is a Klusterlet whose agents run our image on a cluster.
type DropIn struct {
	klusterlet.Klusterlet
	// On is the cluster that the agents run on. In hosted mode that is another one than the managed cluster.
	On *cluster.Cluster
	// KeepsDefinitions is set where the managed cluster has another agent, which needs the definitions, too.
	KeepsDefinitions bool
}

// Rendered is a Klusterlet as the operator renders it with our image, for a cluster of that name on the hub.
func (f *Fleet) Rendered(cluster, namespace string) klusterlet.Klusterlet {
	return klusterlet.Klusterlet{
		Name: "klusterlet", Namespace: namespace, ManagedNamespace: names.NamespaceAgent, Cluster: cluster,
		UID: "7c6d2d0a-" + cluster, Image: "spokelet/spokelet:" + f.Images().Tag, Replicas: 1,
	}
}

// Run starts the agents, joins the cluster, and applies a work. As the operator does, it starts the agent for works
// when there is a credential for the hub. The Klusterlet is removed when the scenario ends.
func (d DropIn) Run(ctx context.Context, s *Session, work string) error {
	if err := d.Prepare(ctx, s); err != nil {
		return err
	}
	objects, err := d.Objects()
	if err != nil {
		return err
	}
	if err := Apply(ctx, d.On, objects[:1]); err != nil {
		return err
	}
	if err := s.Fleet.Join(ctx, d.Cluster, nil); err != nil {
		return err
	}
	if err := Apply(ctx, d.On, objects[1:]); err != nil {
		return err
	}
	if err := s.ApplyWork(ctx, d.Cluster, work); err != nil {
		return err
	}
	return d.Check(ctx)
}

// Prepare creates what the operator creates before it starts the agents.
func (d DropIn) Prepare(ctx context.Context, s *Session) error {
	f := s.Fleet
	definitions, err := f.Manifests("crds/spoke")
	if err != nil {
		return err
	}
	s.Cleanup("remove the Klusterlet", func(ctx context.Context) error { return d.remove(ctx, f) })
	if err := Apply(ctx, f.Managed(), definitions); err != nil {
		return err
	}
	if err := d.Rights(ctx, f); err != nil {
		return err
	}
	bootstrap, err := f.BootstrapKubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := PutKubeconfig(ctx, d.On, d.Namespace, klusterlet.SecretBootstrap, bootstrap); err != nil {
		return err
	}
	if !d.Hosted {
		return nil
	}
	accounts := map[string]string{
		klusterlet.SecretManagedRegistration: d.RegistrationAccount(), klusterlet.SecretManagedWork: d.WorkAccount(),
	}
	if d.Singleton {
		accounts = map[string]string{klusterlet.SecretManagedAgent: d.WorkAccount()}
	}
	for secret, account := range accounts {
		kubeconfig, err := AccountKubeconfig(ctx, f.Managed(), d.ManagedNamespace, account)
		if err != nil {
			return err
		}
		if err := PutKubeconfig(ctx, d.On, d.Namespace, secret, kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// Rights applies the namespaces, ServiceAccounts and rights of both clusters.
func (d DropIn) Rights(ctx context.Context, f *Fleet) error {
	management, managed, err := d.rights()
	if err != nil {
		return err
	}
	if err := Apply(ctx, f.Managed(), managed); err != nil {
		return err
	}
	return Apply(ctx, d.On, management)
}

// rights are the namespaces, ServiceAccounts and rights on the cluster that the agents run on, and on the managed one.
func (d DropIn) rights() (management, managed []*unstructured.Unstructured, err error) {
	text, err := d.Management()
	if err == nil {
		management, err = Decode(text)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err = d.Managed()
	if err == nil {
		managed, err = Decode(text)
	}
	return management, managed, err
}

// remove removes the cluster from the hub, and then all that the operator creates.
func (d DropIn) remove(ctx context.Context, f *Fleet) error {
	management, managed, err := d.rights()
	if err != nil {
		return err
	}
	if err := f.DeleteCluster(ctx, d.Cluster); err != nil {
		return err
	}
	if err := Delete(ctx, d.On, management); err != nil {
		return err
	}
	if d.KeepsDefinitions {
		return Delete(ctx, f.Managed(), managed)
	}
	definitions, err := f.Manifests("crds/spoke")
	if err != nil {
		return err
	}
	return Delete(ctx, f.Managed(), append(definitions, managed...))
}

// Objects renders the Deployments: that of registration first, or the one of a singleton.
func (d DropIn) Objects() ([]*unstructured.Unstructured, error) {
	list, err := d.Deployments()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, deployment := range list {
		raw, err := json.Marshal(deployment)
		if err != nil {
			return nil, fmt.Errorf("encoding Deployment %s: %w", deployment.Name, err)
		}
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding Deployment %s: %w", deployment.Name, err)
		}
		unstructured.RemoveNestedField(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		objects = append(objects, object)
	}
	return objects, nil
}

// Check checks that the probes of all pods pass, and that none of them was restarted.
func (d DropIn) Check(ctx context.Context) error {
	list, err := d.Deployments()
	if err != nil {
		return err
	}
	for _, deployment := range list {
		if err := WaitDeployment(ctx, d.On, d.Namespace, deployment.Name); err != nil {
			return err
		}
		pod, err := Pod(ctx, d.On, d.Namespace, App(deployment))
		if err != nil {
			return err
		}
		if restarts := Restarts(pod); restarts > 0 {
			return fmt.Errorf("pod %s was restarted %d times", pod.Name, restarts)
		}
	}
	return nil
}

// App returns the label by which Pod finds the pod of a Deployment of a Klusterlet.
func App(deployment *appsv1.Deployment) string { return deployment.Spec.Selector.MatchLabels["app"] }
