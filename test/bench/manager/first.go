package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// perAddOn is how often one add-on is installed: the agent asks for at most ten certificates of one add-on in a minute.
const perAddOn = 8

// realCluster is the name of the cluster that is real.
const realCluster = "bench"

// single is a hub and one real cluster with an agent.
type single struct {
	fleet   *fleet.Fleet
	cluster *fleet.Cluster
	// hub and spoke are administrators without a limit.
	hub, spoke client.WithWatch
	addOn      string
}

// first installs one add-on on one real cluster again and again, and measures from its creation until the managed
// cluster has its Deployment and its credential.
func first(ctx context.Context, o Options, table *measure.Table) error {
	fmt.Fprintf(table.Log, "%s one add-on on one cluster\n", time.Now().UTC().Format(time.TimeOnly))
	patience := budgeted().patience()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	f, err := fleet.New(ctx, fleet.Options{Clusters: []string{realCluster}, Binaries: o.Binaries, Log: table.Log})
	if err != nil {
		return err
	}
	s := &single{fleet: f, cluster: f.Cluster(realCluster)}
	err = s.measure(ctx, o.Rounds, table)
	if err != nil {
		err = fmt.Errorf("one add-on on one cluster: %w", err)
	}
	return errors.Join(err, f.Close())
}

func (s *single) measure(ctx context.Context, rounds int, table *measure.Table) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	var deployments, credentials []time.Duration
	// The first round is for caches and connections.
	for round := range rounds + 1 {
		if round%perAddOn == 0 {
			s.addOn = addOnName(round / perAddOn)
			if err := s.define(ctx); err != nil {
				return err
			}
		}
		deployment, credential, err := s.round(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if round > 0 {
			deployments, credentials = append(deployments, deployment), append(credentials, credential)
		}
	}
	for _, figure := range []struct {
		name          string
		took          []time.Duration
		middle, worst time.Duration
	}{
		{"Deployment", deployments, 120 * time.Millisecond, 250 * time.Millisecond},
		{"credential", credentials, 150 * time.Millisecond, 300 * time.Millisecond},
	} {
		name := "one add-on on one cluster, creation to " + figure.name
		table.Time(name+", p50", measure.Percentile(figure.took, 0.50), figure.middle)
		table.Time(name+", p90", measure.Percentile(figure.took, 0.90), figure.worst)
	}
	return nil
}

// start brings hub, agent, cluster and the definition of the add-on up.
func (s *single) start(ctx context.Context) error {
	var err error
	options := client.Options{Scheme: fleet.Scheme()}
	if s.hub, err = client.NewWithWatch(s.fleet.Hub.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the hub: %w", err)
	}
	if s.spoke, err = client.NewWithWatch(s.cluster.ControlPlane.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the cluster: %w", err)
	}
	if err := s.fleet.InstallHub(ctx, nil); err != nil {
		return err
	}
	if err := s.fleet.StartAgent(ctx, s.cluster); err != nil {
		return err
	}
	if err := s.fleet.Accept(ctx, realCluster, nil); err != nil {
		return err
	}
	if err := s.fleet.WaitAvailable(ctx, s.cluster, nil); err != nil {
		return err
	}
	if err := s.create(ctx, groundwork()...); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgentAddon}}
	if err := s.spoke.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// define creates the definition of the add-on.
func (s *single) define(ctx context.Context) error {
	t, err := template(s.addOn, 1)
	if err != nil {
		return err
	}
	return s.create(ctx, t, byHand(s.addOn, t.Name))
}

// create creates objects on the hub.
func (s *single) create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := s.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// round installs the add-on, waits for what it brings, and removes it again.
func (s *single) round(ctx context.Context) (deployment, credential time.Duration, err error) {
	secret := s.addOn + "-hub-kubeconfig"
	deployments, err := s.follow(ctx, &appsv1.DeploymentList{}, s.addOn)
	if err != nil {
		return 0, 0, err
	}
	defer deployments.Stop()
	secrets, err := s.follow(ctx, &corev1.SecretList{}, secret)
	if err != nil {
		return 0, 0, err
	}
	defer secrets.Stop()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: realCluster, Name: s.addOn}}
	began := time.Now()
	if err := s.hub.Create(ctx, addOn); err != nil {
		return 0, 0, fmt.Errorf("creating the add-on: %w", err)
	}
	there := make(chan error, 1)
	go func() {
		err := fleet.AwaitEvent(ctx, secrets, complete)
		credential = time.Since(began)
		there <- err
	}()
	failed := fleet.AwaitEvent(ctx, deployments, func(e watch.Event) bool { return e.Type == watch.Added })
	deployment = time.Since(began)
	if err := errors.Join(failed, <-there); err != nil {
		return 0, 0, err
	}
	return deployment, credential, s.remove(ctx, addOn, secret)
}

// complete reports whether an event shows a credential.
func complete(e watch.Event) bool {
	secret, ok := e.Object.(*corev1.Secret)
	return ok && e.Type != watch.Deleted && len(secret.Data["tls.crt"]) > 0 && len(secret.Data["kubeconfig"]) > 0
}

// follow watches one object of the add-on on the cluster, from now on.
func (s *single) follow(ctx context.Context, list client.ObjectList, name string) (watch.Interface, error) {
	one := client.MatchingFields{"metadata.name": name}
	if err := s.spoke.List(ctx, list, client.InNamespace(names.NamespaceAgentAddon), one); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	version := list.GetResourceVersion()
	events, err := s.spoke.Watch(ctx, list, client.InNamespace(names.NamespaceAgentAddon), one,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}
	return events, nil
}

// remove deletes the add-on and waits until nothing of it is left.
func (s *single) remove(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, secret string) error {
	if err := s.hub.Delete(ctx, addOn); err != nil {
		return fmt.Errorf("deleting the add-on: %w", err)
	}
	gone := func(c client.Client, object client.Object, namespace, name string) error {
		return fleet.Wait(ctx, fmt.Sprintf("%T %s to be gone", object, name), nil, func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
			if err == nil {
				return fleet.NotYet("it is there")
			}
			return client.IgnoreNotFound(err)
		})
	}
	return errors.Join(
		gone(s.hub, &addonv1alpha1.ManagedClusterAddOn{}, realCluster, s.addOn),
		gone(s.spoke, &appsv1.Deployment{}, names.NamespaceAgentAddon, s.addOn),
		gone(s.spoke, &corev1.Secret{}, names.NamespaceAgentAddon, secret),
	)
}
