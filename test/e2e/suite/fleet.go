package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/test/e2e/cluster"
)

// Fleet is the clusters of a suite, and what is installed on them.
type Fleet struct {
	clusters map[Role]*cluster.Cluster
	options  Options
	// files are the images that are loaded into every cluster.
	files []string
}

// Cluster returns the cluster of a role, which the suite must have named; nil otherwise.
func (f *Fleet) Cluster(role Role) *cluster.Cluster { return f.clusters[role] }

// Hub returns the hub.
func (f *Fleet) Hub() *cluster.Cluster { return f.clusters[Hub] }

// Managed returns the managed cluster.
func (f *Fleet) Managed() *cluster.Cluster { return f.clusters[Managed] }

// Images returns the images; every cluster has those of the suite.
func (f *Fleet) Images() Images { return f.options.Images }

// Outage returns how long the hub is to be away where a scenario takes it away.
func (f *Fleet) Outage() time.Duration { return f.options.Outage }

// dumpObjects writes what explains a failure beside the logs of a cluster: its objects of our APIs, pods and Events.
func dumpObjects(c *cluster.Cluster, dir string) error {
	if c.Client == nil {
		return nil // It was never reached.
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := os.MkdirAll(filepath.Join(dir, c.Name), 0o755); err != nil {
		return fmt.Errorf("making a folder for the objects of cluster %s: %w", c.Name, err)
	}
	var errs []error
	for name, list := range map[string]client.ObjectList{
		"pods": &corev1.PodList{}, "events": &corev1.EventList{}, "works": &workv1.ManifestWorkList{},
		"applied": &workv1.AppliedManifestWorkList{}, "clusters": &clusterv1.ManagedClusterList{},
		"addons": &addonv1beta1.ManagedClusterAddOnList{}, "definitions": &addonv1beta1.ClusterManagementAddOnList{},
	} {
		var content []byte
		err := c.Client.List(ctx, list)
		if err == nil {
			content, err = yaml.Marshal(list)
		}
		if err != nil { // A definition that is not installed is not a failure of the export.
			content = []byte(err.Error())
		}
		errs = append(errs, os.WriteFile(filepath.Join(dir, c.Name, name+".yaml"), content, 0o600))
	}
	return errors.Join(errs...)
}
