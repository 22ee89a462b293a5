package sandbox

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// waitReady waits until the API server says that it is ready.
func (c *ControlPlane) waitReady(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return c.poll(ctx, "the API server to be ready", func(ctx context.Context) error {
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// systemNamespaces are the namespaces that the API server creates by itself.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// waitControllers waits until the controllers have given every namespace of the system what pods there start with: the
// ServiceAccount and the certificate to verify the API server with. They do so in any order, so one namespace says
// nothing about the next.
func (c *ControlPlane) waitControllers(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return c.poll(ctx, "the controllers to work", func(ctx context.Context) error {
		for _, namespace := range systemNamespaces {
			_, err := clients.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("ServiceAccount %s/default does not exist yet", namespace)
			}
			if err != nil {
				return err
			}
			_, err = clients.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("ConfigMap %s/kube-root-ca.crt does not exist yet", namespace)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// poll calls holds until it returns nil, a process of the control plane ends, or ctx does.
func (c *ControlPlane) poll(ctx context.Context, what string, holds func(ctx context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := c.exited(); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := holds(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
