package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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

// waitControllers waits until the controllers have made the first ServiceAccount, which tests and pods start with, and
// the certificate that pods verify the API server with.
func (c *ControlPlane) waitControllers(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return c.poll(ctx, "the controllers to work", func(ctx context.Context) error {
		_, err := clients.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New("ServiceAccount default/default does not exist yet")
		}
		if err != nil {
			return err
		}
		_, err = clients.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New("ConfigMap default/kube-root-ca.crt does not exist yet")
		}
		return err
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

// Metrics reads what the API server counts, by the name of the metric.
func (c *ControlPlane) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	clients, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", c.Name, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parsing the metrics of %s: %w", c.Name, err)
	}
	return families, nil
}
