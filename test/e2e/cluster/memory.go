package cluster

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics of the kubelet about the memory of a container.
const (
	workingSetMetric = "container_memory_working_set_bytes"
	rssMetric        = "container_memory_rss"
)

// Memory is the memory of a container as its kubelet measured it, in bytes.
type Memory struct {
	// Namespace, Pod and Container name the container.
	Namespace, Pod, Container string
	// WorkingSet is container_memory_working_set_bytes: what limits and evictions are measured against.
	WorkingSet int64
	// RSS is container_memory_rss: anonymous memory only.
	RSS int64
	// Measured is when the kubelet measured it, in milliseconds since 1970.
	Measured int64
}

// Memory returns the memory of the containers in some namespaces, in the order of their names.
func (c *Cluster) Memory(ctx context.Context, namespaces ...string) ([]Memory, error) {
	path := "/api/v1/nodes/" + c.nodeName() + "/proxy/metrics/cadvisor"
	text, err := c.Kube.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the figures of the kubelet of cluster %s: %w", c.Name, err)
	}
	return parseMemory(text, namespaces)
}

// parseMemory reads the memory of containers from the metrics of a kubelet.
func parseMemory(text []byte, namespaces []string) ([]Memory, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the figures of a kubelet: %w", err)
	}
	found := map[string]*Memory{}
	for name, put := range map[string]func(*Memory, int64){
		workingSetMetric: func(m *Memory, bytes int64) { m.WorkingSet = bytes },
		rssMetric:        func(m *Memory, bytes int64) { m.RSS = bytes },
	} {
		for _, metric := range families[name].GetMetric() {
			labels := labelsOf(metric)
			// Without a name it is the whole pod; POD is the container that holds its namespaces.
			if c := labels["container"]; c == "" || c == "POD" || !slices.Contains(namespaces, labels["namespace"]) {
				continue
			}
			key := labels["namespace"] + "/" + labels["pod"] + "/" + labels["container"]
			if found[key] == nil {
				found[key] = &Memory{Namespace: labels["namespace"], Pod: labels["pod"], Container: labels["container"]}
			}
			// A container that was restarted is there twice for a while; the younger figure counts.
			if metric.GetTimestampMs() >= found[key].Measured {
				found[key].Measured = metric.GetTimestampMs()
				put(found[key], int64(metric.GetGauge().GetValue()))
			}
		}
	}
	var all []Memory
	for _, m := range found {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Memory) int {
		return strings.Compare(a.Namespace+"/"+a.Pod+"/"+a.Container, b.Namespace+"/"+b.Pod+"/"+b.Container)
	})
	return all, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
