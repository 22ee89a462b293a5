package neighbours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// roles are the clusters of the suite.
func roles() []suite.Role { return []suite.Role{suite.Hub, suite.Managed} }

// install installs hub manager and agents. Add-ons of the hub itself get tokens that are replaced within a run.
func (p *play) install(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	for _, role := range roles() {
		snapshot, err := f.Cluster(role).Snapshot(ctx)
		if err != nil {
			return err
		}
		p.before[role] = snapshot
	}
	tag := f.Images().Tag
	if err := f.InstallHub(ctx, tag); err != nil {
		return err
	}
	if err := f.InstallAgent(ctx, clusterName, tag); err != nil {
		return err
	}
	err := f.InstallAgentOn(ctx, f.Hub(), homeName, tag, "--addon-kubeclient-registration-auth=token",
		"--addon-token-expiration-seconds=600")
	if err != nil {
		return err
	}
	for name, on := range map[string]*cluster.Cluster{clusterName: f.Managed(), homeName: f.Hub()} {
		if err := f.Join(ctx, name, nil); err != nil {
			return err
		}
		if err := suite.WaitDeployment(ctx, on, names.NamespaceAgent, suite.Agent); err != nil {
			return err
		}
	}
	return nil
}

// uninstall removes what the scenarios left.
func (p *play) uninstall(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	// The other scenarios removed their add-ons.
	courier, err := objectsOf(f, courierYAML)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, f.Hub(), courier); err != nil {
		return err
	}
	for _, name := range []string{clusterName, homeName} {
		if err := f.DeleteCluster(ctx, name); err != nil {
			return err
		}
		agent, err := f.AgentObjects(name, f.Images().Tag)
		if err != nil {
			return err
		}
		on := f.Managed()
		if name == homeName {
			on = f.Hub()
		}
		if err := suite.Delete(ctx, on, agent); err != nil {
			return err
		}
	}
	manager, err := f.HubObjects(f.Images().Tag)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, f.Hub(), manager); err != nil {
		return err
	}
	var errs []error
	for _, role := range roles() {
		errs = append(errs, asBefore(ctx, s, role, p.before[role]))
	}
	return errors.Join(errs...)
}

// asBefore waits until a cluster has the objects that it had before, and no others.
func asBefore(ctx context.Context, s *suite.Session, role suite.Role, before cluster.Snapshot) error {
	s.Note("%s: %d objects before and after", role, len(before))
	return cluster.Until(ctx, "cluster "+string(role)+" to be as it was", func(ctx context.Context) error {
		after, err := s.Fleet.Cluster(role).Snapshot(ctx)
		if err != nil {
			return err
		}
		return before.Diff(after)
	})
}

// objectsOf decodes the YAML of an add-on. Names in it are replaced by values, given as pairs.
func objectsOf(f *suite.Fleet, text string, values ...string) ([]*unstructured.Unstructured, error) {
	values = append(values, "IMAGE", f.Images().Neighbour, "WORKLOAD", f.Images().Workload)
	text = strings.NewReplacer(values...).Replace(text)
	objects, err := suite.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the YAML of an add-on: %w", err)
	}
	return objects, nil
}
