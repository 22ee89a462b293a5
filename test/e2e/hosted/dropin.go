package hosted

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/klusterlet"
)

// inDefaultMode is the Klusterlet on the managed cluster.
func inDefaultMode(f *suite.Fleet) klusterlet.Klusterlet {
	return f.Rendered("dropin", names.NamespaceAgent)
}

// dropInDefault runs the two agents on the managed cluster.
func (p *play) dropInDefault(ctx context.Context, s *suite.Session) error {
	d := suite.DropIn{Klusterlet: inDefaultMode(s.Fleet), On: s.Fleet.Managed()}
	return d.Run(ctx, s, "dropped-in")
}

// dropInSingleton replaces the two agents by one.
func (p *play) dropInSingleton(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	apart := suite.DropIn{Klusterlet: inDefaultMode(f), On: f.Managed()}
	if err := apart.Run(ctx, s, "singleton"); err != nil {
		return err
	}
	before, err := observe(ctx, f, apart.Cluster, "singleton")
	if err != nil {
		return err
	}
	former, err := apart.Objects()
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, apart.On, former); err != nil {
		return err
	}
	one := apart
	one.Singleton = true
	if err := one.Rights(ctx, f); err != nil {
		return err
	}
	fresh, err := one.Objects()
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, one.On, fresh); err != nil {
		return err
	}
	if err := awaitIdentity(ctx, f, one); err != nil {
		return err
	}
	if err := one.Check(ctx); err != nil {
		return err
	}
	took, err := f.RepairWork(ctx, "singleton")
	if err != nil {
		return err
	}
	s.Note("repaired %.1f s after it was deleted", took.Seconds())
	after, err := observe(ctx, f, one.Cluster, "singleton")
	before.requests++
	if err == nil && after != before {
		err = fmt.Errorf("there should be %+v, and there is %+v", before, after)
	}
	return err
}

// awaitIdentity approves the request of a singleton until it has its certificate. The operator gives it the UID of the
// Klusterlet as the name of the agent, and a registration agent none, so it asks for a certificate of its own.
func awaitIdentity(ctx context.Context, f *suite.Fleet, d suite.DropIn) error {
	return cluster.Until(ctx, "the certificate of agent "+d.UID, func(ctx context.Context) error {
		if err := f.Join(ctx, d.Cluster, nil); err != nil {
			return err
		}
		var own corev1.Secret
		key := client.ObjectKey{Namespace: d.Namespace, Name: klusterlet.SecretHub}
		if err := d.On.Client.Get(ctx, key, &own); err != nil {
			return err
		}
		if agent := string(own.Data["agent-name"]); agent != d.UID {
			return fmt.Errorf("the credential is that of agent %s", agent)
		}
		return nil
	})
}

// dropInHosted runs the two agents on the hosting cluster.
func (p *play) dropInHosted(ctx context.Context, s *suite.Session) error {
	spec := s.Fleet.Rendered("dropin-hosted", "klusterlet")
	spec.Hosted = true
	d := suite.DropIn{Klusterlet: spec, On: s.Fleet.Cluster(suite.Hosting)}
	if err := d.Run(ctx, s, "dropped-in-hosted"); err != nil {
		return err
	}
	return suite.Gone(ctx, d.On, suite.WorkObject("dropped-in-hosted"))
}

// state holds what stays when one agent takes the place of another.
type state struct {
	// requests is the number of certificate requests of the cluster.
	requests int
	// record is the AppliedManifestWork of a work.
	record types.UID
}

// observe reads the state of a cluster and one of its works.
func observe(ctx context.Context, f *suite.Fleet, clusterName, work string) (state, error) {
	requests, err := f.Requests(ctx, clusterName)
	if err != nil {
		return state{}, err
	}
	found := state{requests: requests}
	var records workv1.AppliedManifestWorkList
	if err := f.Managed().Client.List(ctx, &records); err != nil {
		return found, fmt.Errorf("listing AppliedManifestWorks: %w", err)
	}
	for _, record := range records.Items {
		if record.Spec.ManifestWorkName == work {
			found.record = record.UID
		}
	}
	if found.record == "" {
		return found, fmt.Errorf("there is no AppliedManifestWork of work %s", work)
	}
	return found, nil
}
