package cluster

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	kindexec "sigs.k8s.io/kind/pkg/exec"
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

// ProcessRSS returns the resident memory of the one process of that name on the node, in bytes. It has the pages of the
// program, too, which the kubelet counts to the container only if the container was the first to read them.
func (c *Cluster) ProcessRSS(ctx context.Context, program string) (int64, error) {
	node, err := c.node()
	if err != nil {
		return 0, err
	}
	script := fmt.Sprintf(
		"pid=$(pgrep -x %s) && sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$pid/status", program)
	lines, err := kindexec.OutputLines(node.CommandContext(ctx, "sh", "-c", script))
	if err != nil || len(lines) != 1 {
		return 0, fmt.Errorf("finding the one process %s on node %s: %w: %v", program, c.nodeName(), err, lines)
	}
	kilobytes, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %s: %w", program, err)
	}
	return kilobytes << 10, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
