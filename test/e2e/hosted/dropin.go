package hosted

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/klusterlet"
)

// rendered is a Klusterlet as the operator renders it with our image.
func rendered(f *suite.Fleet, cluster, namespace string) klusterlet.Klusterlet {
	return klusterlet.Klusterlet{
		Name: "klusterlet", Namespace: namespace, ManagedNamespace: names.NamespaceAgent, Cluster: cluster,
		UID: "7c6d2d0a-" + cluster, Image: "spokelet/spokelet:" + f.Images().Tag, Replicas: 1,
	}
}

// inDefaultMode is the Klusterlet on the managed cluster.
func inDefaultMode(f *suite.Fleet) klusterlet.Klusterlet {
	return rendered(f, "dropin", names.NamespaceAgent)
}

// dropIn is a Klusterlet whose agents run on a cluster.
type dropIn struct {
	klusterlet.Klusterlet
	on *cluster.Cluster
}

// prepare creates what the operator creates before it starts the agents.
func (d dropIn) prepare(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	definitions, err := f.Manifests("crds/spoke")
	if err != nil {
		return err
	}
	management, err := d.objects(d.Management())
	if err != nil {
		return err
	}
	managed, err := d.objects(d.Managed())
	if err != nil {
		return err
	}
	managed = append(definitions, managed...)
	s.Cleanup("remove the Klusterlet", func(ctx context.Context) error {
		if err := deleteCluster(ctx, f, d.Cluster); err != nil {
			return err
		}
		if err := suite.Delete(ctx, d.on, management); err != nil {
			return err
		}
		return suite.Delete(ctx, f.Managed(), managed)
	})
	if err := suite.Apply(ctx, f.Managed(), managed); err != nil {
		return err
	}
	if err := suite.Apply(ctx, d.on, management); err != nil {
		return err
	}
	bootstrap, err := f.BootstrapKubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := putSecret(ctx, d.on, d.Namespace, klusterlet.SecretBootstrap, bootstrap); err != nil {
		return err
	}
	if !d.Hosted {
		return nil
	}
	for secret, account := range map[string]string{
		klusterlet.SecretManagedRegistration: d.RegistrationAccount(), klusterlet.SecretManagedWork: d.WorkAccount(),
	} {
		kubeconfig, err := suite.AccountKubeconfig(ctx, f.Managed(), d.ManagedNamespace, account)
		if err != nil {
			return err
		}
		if err := putSecret(ctx, d.on, d.Namespace, secret, kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// objects decodes what was rendered.
func (d dropIn) objects(text []byte, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return suite.Decode(text)
}

// deployments renders the Deployments.
func (d dropIn) deployments() ([]*appsv1.Deployment, []*unstructured.Unstructured, error) {
	list, err := d.Deployments()
	if err != nil {
		return nil, nil, err
	}
	var objects []*unstructured.Unstructured
	for _, deployment := range list {
		raw, err := json.Marshal(deployment)
		if err != nil {
			return nil, nil, fmt.Errorf("encoding Deployment %s: %w", deployment.Name, err)
		}
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &object.Object); err != nil {
			return nil, nil, fmt.Errorf("decoding Deployment %s: %w", deployment.Name, err)
		}
		unstructured.RemoveNestedField(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		objects = append(objects, object)
	}
	return list, objects, nil
}

// run starts the agents, joins the cluster, and applies a work. As the operator does, it starts the agent for works
// when there is a credential for the hub.
func (d dropIn) run(ctx context.Context, s *suite.Session, work string) error {
	if err := d.prepare(ctx, s); err != nil {
		return err
	}
	_, objects, err := d.deployments()
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, d.on, objects[:1]); err != nil {
		return err
	}
	if err := s.Fleet.Join(ctx, d.Cluster, nil); err != nil {
		return err
	}
	if err := suite.Apply(ctx, d.on, objects[1:]); err != nil {
		return err
	}
	if err := apply(ctx, s, d.Cluster, work); err != nil {
		return err
	}
	return d.check(ctx)
}

// check checks that the probes of all pods pass, and that none of them was restarted.
func (d dropIn) check(ctx context.Context) error {
	list, _, err := d.deployments()
	if err != nil {
		return err
	}
	for _, deployment := range list {
		if err := suite.WaitDeployment(ctx, d.on, d.Namespace, deployment.Name); err != nil {
			return err
		}
		pod, err := suite.Pod(ctx, d.on, d.Namespace, deployment.Spec.Selector.MatchLabels["app"])
		if err != nil {
			return err
		}
		if restarts := suite.Restarts(pod); restarts > 0 {
			return fmt.Errorf("pod %s was restarted %d times", pod.Name, restarts)
		}
	}
	return nil
}

// dropInDefault runs the two agents on the managed cluster.
func (p *play) dropInDefault(ctx context.Context, s *suite.Session) error {
	d := dropIn{Klusterlet: inDefaultMode(s.Fleet), on: s.Fleet.Managed()}
	return d.run(ctx, s, "dropped-in")
}

// dropInSingleton replaces the two agents by one.
func (p *play) dropInSingleton(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	apart := dropIn{Klusterlet: inDefaultMode(f), on: f.Managed()}
	if err := apart.run(ctx, s, "singleton"); err != nil {
		return err
	}
	before, err := observe(ctx, f, apart.Cluster, "singleton")
	if err != nil {
		return err
	}
	_, former, err := apart.deployments()
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, apart.on, former); err != nil {
		return err
	}
	one := apart
	one.Singleton = true
	management, err := one.objects(one.Management())
	if err != nil {
		return err
	}
	managed, err := one.objects(one.Managed())
	if err != nil {
		return err
	}
	_, fresh, err := one.deployments()
	if err != nil {
		return err
	}
	for _, objects := range [][]*unstructured.Unstructured{management, managed, fresh} {
		if err := suite.Apply(ctx, one.on, objects); err != nil {
			return err
		}
	}
	if err := one.awaitIdentity(ctx, f); err != nil {
		return err
	}
	if err := one.check(ctx); err != nil {
		return err
	}
	took, err := repair(ctx, f, "singleton")
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
func (d dropIn) awaitIdentity(ctx context.Context, f *suite.Fleet) error {
	return cluster.Until(ctx, "the certificate of agent "+d.UID, func(ctx context.Context) error {
		if err := f.Join(ctx, d.Cluster, nil); err != nil {
			return err
		}
		var own corev1.Secret
		key := client.ObjectKey{Namespace: d.Namespace, Name: klusterlet.SecretHub}
		if err := d.on.Client.Get(ctx, key, &own); err != nil {
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
	spec := rendered(s.Fleet, "dropin-hosted", "klusterlet")
	spec.Hosted = true
	d := dropIn{Klusterlet: spec, on: s.Fleet.Cluster(suite.Hosting)}
	if err := d.run(ctx, s, "dropped-in-hosted"); err != nil {
		return err
	}
	return suite.Gone(ctx, d.on, configMap("dropped-in-hosted"))
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
	var requests certificatesv1.CertificateSigningRequestList
	label := client.MatchingLabels{names.LabelClusterName: clusterName}
	if err := f.Hub().Client.List(ctx, &requests, label); err != nil {
		return state{}, fmt.Errorf("listing the certificate requests of cluster %s: %w", clusterName, err)
	}
	found := state{requests: len(requests.Items)}
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
