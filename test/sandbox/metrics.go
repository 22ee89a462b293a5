package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

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
	return parseMetrics(c.Name, bytes.NewReader(text))
}

// StoreMetrics reads what etcd counts, by the name of the metric.
func (c *ControlPlane) StoreMetrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return ReadMetrics(ctx, c.store)
}

// ReadMetrics reads what the program at a URL counts, by the name of the metric.
func ReadMetrics(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the metrics of %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", url, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New("reading the metrics of " + url + ": it answers " + answer.Status)
	}
	return parseMetrics(url, answer.Body)
}

func parseMetrics(whose string, text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the metrics of %s: %w", whose, err)
	}
	return families, nil
}
