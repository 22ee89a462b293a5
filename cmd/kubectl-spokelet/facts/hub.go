package facts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/version"
	"github.com/spokelet/spokelet/manifests"
)

// Hub reads and judges a hub itself; nil for a bundle that says nothing of it.
func Hub(ctx context.Context, r *fleet.Reader, clusters []fleet.Cluster, now time.Time) ([]report.Finding, error) {
	state, err := fleet.ReadState(ctx, r)
	if err != nil || state == nil {
		return nil, err
	}
	f := report.HubFacts{Now: now, State: *state, Version: version.String(), Clusters: clusters, Lacks: r.Lacks}
	if f.Wanted, err = Policies(); err != nil {
		return nil, err
	}
	return report.JudgeHub(f), nil
}

// Policies are the names of the admission policies that this version ships.
func Policies() ([]string, error) {
	var wanted []string
	for _, document := range manifests.Policies() {
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(document)))
		for {
			raw, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var object metav1.PartialObjectMetadata
			if err == nil {
				err = yaml.Unmarshal(raw, &object)
			}
			if err != nil {
				return nil, fmt.Errorf("reading the policies of this version: %w", err)
			}
			if object.Kind == "ValidatingAdmissionPolicy" {
				wanted = append(wanted, object.Name)
			}
		}
	}
	return wanted, nil
}
