package render

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/deploy/works"
)

// Deployment is what an add-on deploys on one cluster.
type Deployment struct {
	// Cluster and AddOn name the add-on.
	Cluster, AddOn string
	// Objects are those of its works, in the order of the works.
	Objects []Object
	// Roles are sentences about the roles that its agent gets on the hub, and Credentials about its identities.
	Roles, Credentials []string
	// Err is why it would not be deployed; nil when it would.
	Err error
}

// Object is an object in a work of an add-on.
type Object struct {
	*unstructured.Unstructured
	// Host reports that it is for the hosting cluster.
	Host bool
	// Hook reports that it is written when the add-on is deleted.
	Hook bool
}

// Deployments returns what add-ons deploy on clusters, sorted by cluster and add-on. One that would not be deployed
// says why, and does not hide the others; an error of Deployments is about the files as a whole.
func (p Program) Deployments(ctx context.Context, files []File, o Options) ([]Deployment, error) {
	s, deployer, err := p.scene(ctx, files, o)
	if err != nil {
		return nil, err
	}
	ctx = logr.NewContext(ctx, logr.Discard())
	all := make([]Deployment, 0, len(s.subjects))
	for _, key := range s.subjects {
		all = append(all, s.deployment(ctx, deployer, key))
	}
	return all, nil
}

// deployment returns what an add-on deploys on one cluster.
func (s *scene) deployment(ctx context.Context, deployer *deploy.Reconciler, key types.NamespacedName) Deployment {
	d := Deployment{Cluster: key.Namespace, AddOn: key.Name}
	preview, err := s.preview(ctx, deployer, key)
	if err != nil {
		d.Err = s.explain(key, preview, err)
		return d
	}
	d.Roles, d.Credentials = roles(preview.Bindings), credentials(preview.AddOn.Status.Registrations)
	for _, work := range preview.Works {
		for i := range work.After.Spec.Workload.Manifests {
			object := Object{
				Unstructured: &unstructured.Unstructured{},
				Host:         work.Side == works.Hosting, Hook: work.Purpose == works.PreDelete,
			}
			if err := object.UnmarshalJSON(work.After.Spec.Workload.Manifests[i].Raw); err != nil {
				d.Err = s.explain(key, preview, fmt.Errorf("decoding an object of work %s: %w",
					client.ObjectKeyFromObject(work.After), err))
				return d
			}
			d.Objects = append(d.Objects, object)
		}
	}
	return d
}
