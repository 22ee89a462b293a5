package hosted

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// managedSecret has the kubeconfig of the managed cluster.
const managedSecret = "external-managed-kubeconfig"

// install installs hub manager and agents; the one on the hosting cluster by the commands of the page.
func (p *play) install(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	for _, role := range []suite.Role{suite.Hub, suite.Hosting, suite.Managed} {
		snapshot, err := f.Cluster(role).Snapshot(ctx)
		if err != nil {
			return err
		}
		p.before[role] = snapshot
	}
	if err := f.InstallHub(ctx, f.Images().Tag); err != nil {
		return err
	}
	own, err := f.AgentObjects(hostingName, f.Images().Tag)
	if err != nil {
		return err
	}
	hosting := f.Cluster(suite.Hosting)
	if err := suite.Apply(ctx, hosting, own); err != nil {
		return err
	}
	bootstrap, err := f.BootstrapKubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := suite.PutKubeconfig(ctx, hosting, names.NamespaceAgent, names.SecretBootstrap, bootstrap); err != nil {
		return err
	}
	sh, err := newShell(ctx, f)
	if err != nil {
		return err
	}
	return sh.do(ctx, onManaged, forAgent, onHosting)
}

// join accepts both clusters.
func (p *play) join(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	for _, name := range []string{hostingName, managedName} {
		if err := f.Join(ctx, name, nil); err != nil {
			return err
		}
	}
	hosting := f.Cluster(suite.Hosting)
	for _, namespace := range []string{names.NamespaceAgent, managedName} {
		if err := suite.WaitDeployment(ctx, hosting, namespace, suite.Agent); err != nil {
			return err
		}
	}
	return p.checkRights(ctx, f)
}

// checkRights checks that the agent of the managed cluster cannot read the credential of its neighbour.
func (p *play) checkRights(ctx context.Context, f *suite.Fleet) error {
	agent, err := suite.AccountClient(ctx, f.Cluster(suite.Hosting), managedName, names.ServiceAccountAgent)
	if err != nil {
		return err
	}
	var own, other corev1.Secret
	if err := agent.Get(ctx, client.ObjectKey{Namespace: managedName, Name: names.SecretHub}, &own); err != nil {
		return fmt.Errorf("the agent reads its own credential: %w", err)
	}
	err = agent.Get(ctx, client.ObjectKey{Namespace: names.NamespaceAgent, Name: names.SecretHub}, &other)
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("the agent must not be able to read the credential of the agent of the hosting cluster: %w", err)
	}
	return nil
}

// leave removes the managed cluster and its agent, in the order of docs/operations/hosted.md.
func (p *play) leave(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	if err := f.DeleteCluster(ctx, managedName); err != nil {
		return err
	}
	sh, err := newShell(ctx, f)
	if err != nil {
		return err
	}
	if err := sh.do(ctx, remove); err != nil {
		return err
	}
	return p.awaitAsBefore(ctx, s, suite.Managed)
}

// uninstall removes what is left.
func (p *play) uninstall(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	for _, name := range []string{hostingName, managedName} {
		if err := f.DeleteCluster(ctx, name); err != nil {
			return err
		}
	}
	own, err := f.AgentObjects(hostingName, f.Images().Tag)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, f.Cluster(suite.Hosting), own); err != nil {
		return err
	}
	manager, err := f.HubObjects(f.Images().Tag)
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, f.Hub(), manager); err != nil {
		return err
	}
	var errs []error
	for _, role := range []suite.Role{suite.Hub, suite.Hosting, suite.Managed} {
		errs = append(errs, p.awaitAsBefore(ctx, s, role))
	}
	return errors.Join(errs...)
}

// awaitAsBefore waits until a cluster has the objects that it had before anything was installed, and no others.
func (p *play) awaitAsBefore(ctx context.Context, s *suite.Session, role suite.Role) error {
	s.Note("%s: %d objects before and after", role, len(p.before[role]))
	return cluster.Until(ctx, "cluster "+string(role)+" to be as it was", func(ctx context.Context) error {
		after, err := s.Fleet.Cluster(role).Snapshot(ctx)
		if err != nil {
			return err
		}
		return p.before[role].Diff(after)
	})
}
