package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/lease"
)

// run runs the agent until ctx ends.
func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}))
	ctrl.SetLogger(logger)
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	hub, err := newHub(o, mgr.GetScheme())
	if err != nil {
		return err
	}
	if err := mgr.Add(hub); err != nil {
		return fmt.Errorf("adding the hub: %w", err)
	}
	owners, err := ownAccount(ctx, mgr.GetAPIReader(), o)
	if err != nil {
		return err
	}
	c := &copier{hub: hub, spoke: mgr, cluster: o.Cluster, namespace: o.AddonNamespace, owners: owners}
	if err := c.setup(mgr); err != nil {
		return err
	}
	if err := addLease(mgr, o, c, logger); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns the manager of the managed cluster, whose cache holds the copies.
func newManager(o options) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: holding(o.AddonNamespace, copiedLabel),
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	return mgr, nil
}

// newHub returns the hub, whose cache holds the originals.
func newHub(o options, scheme *runtime.Scheme) (cluster.Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.HubKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--hub-kubeconfig: %w", err)
	}
	hub, err := cluster.New(config, func(co *cluster.Options) {
		co.Scheme, co.Cache = scheme, holding(o.Cluster, copyLabel)
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of the hub: %w", err)
	}
	return hub, nil
}

// holding says that a cache holds the ConfigMaps of one namespace that carry a label.
func holding(namespace, label string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{namespace: {}}, Label: labels.SelectorFromSet(labels.Set{label: "true"}),
		}},
	}
}

// ownAccount returns the owner of all that the agent makes: its ServiceAccount.
func ownAccount(ctx context.Context, reader client.Reader, o options) ([]metav1.OwnerReference, error) {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: o.AddonNamespace, Name: o.Account}
	if err := reader.Get(ctx, key, &account); err != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s, to which the copies shall belong: %w", key, err)
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}}, nil
}

// addLease keeps the lease of the add-on fresh for as long as healthy says so.
func addLease(
	mgr ctrl.Manager, o options, c *copier, logger logr.Logger,
) error {
	leases, err := coordinationv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the lease: %w", err)
	}
	failing := false
	renewer := &lease.Renewer{
		Leases: leases.Leases(o.AddonNamespace), Namespace: o.AddonNamespace, Name: o.AddonName, Create: true,
		Duration: o.LeaseDuration, Healthy: []func(context.Context) error{c.healthy}, Owners: c.owners,
		Report: func(_ time.Time, err error) {
			if err != nil && !failing {
				logger.Error(err, "the lease is not renewed, trying again")
			}
			failing = err != nil
		},
	}
	return mgr.Add(manager.RunnableFunc(renewer.Run))
}

// errNotSynced is why the lease is not renewed before the originals were seen.
var errNotSynced = errors.New("the ConfigMaps on the hub have not been read yet")
