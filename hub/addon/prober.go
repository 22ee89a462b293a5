package addon

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// HealthProber is how the hub determines the health of an agent. The zero value leaves the mode in the add-on object.
type HealthProber struct {
	// Type is the kind of the probe.
	Type HealthProbe
	// Work has the details of HealthWork; nil means that the agent is healthy when its works are available.
	Work *WorkProbe
}

// check returns what is wrong with a prober.
func (p HealthProber) check() error {
	switch p.Type {
	case HealthUnchanged, HealthLease, HealthWork, HealthDeployments, HealthWorkloads, HealthCustom:
	default:
		return fmt.Errorf("HealthProber.Type: %q is unknown", p.Type)
	}
	if p.Work != nil && p.Type != HealthWork {
		return fmt.Errorf("HealthProber.Work counts only with type %s", HealthWork)
	}
	return nil
}

// NewLeaseProber returns a prober for agents that renew a Lease (package lease).
func NewLeaseProber() HealthProber { return HealthProber{Type: HealthLease} }

// NewAllDeploymentsProber returns a prober that judges all Deployments of the agent.
func NewAllDeploymentsProber() HealthProber { return HealthProber{Type: HealthDeployments} }

// NewAllWorkloadsProber returns a prober that judges all Deployments, DaemonSets and StatefulSets of the agent.
func NewAllWorkloadsProber() HealthProber { return HealthProber{Type: HealthWorkloads} }

// NewWorkProber returns a prober that judges what clusters feed back about the objects that the fields select; see
// WorkProbe for check.
func NewWorkProber(check func(request ProbeRequest) error, fields ...ProbeField) HealthProber {
	return HealthProber{Type: HealthWork, Work: &WorkProbe{Fields: fields, Check: check}}
}

// NewDeploymentProber returns a prober that judges the named Deployments of the agent: each must have a ready pod,
// unless it is scaled to zero.
func NewDeploymentProber(deployments ...types.NamespacedName) HealthProber {
	fields := make([]ProbeField, 0, len(deployments))
	for _, deployment := range deployments {
		fields = append(fields, ProbeField{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: "apps", Resource: "deployments", Namespace: deployment.Namespace, Name: deployment.Name,
			},
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		})
	}
	return NewWorkProber(func(request ProbeRequest) error {
		if missing := unreported(request, fields); len(missing) > 0 {
			return fmt.Errorf("the cluster reports nothing yet about Deployment %s", strings.Join(missing, ", "))
		}
		return DeploymentAvailabilityHealthChecker(request)
	}, fields...)
}

// unreported returns the objects of fields that a cluster fed back nothing about.
func unreported(request ProbeRequest, fields []ProbeField) []string {
	reported := make(map[workv1.ResourceIdentifier]bool, len(request.Results))
	for _, result := range request.Results {
		reported[result.ResourceIdentifier] = true
	}
	var missing []string
	for _, field := range fields {
		if !reported[field.ResourceIdentifier] {
			missing = append(missing, field.Namespace+"/"+field.Name)
		}
	}
	return missing
}

// DeploymentAvailabilityHealthChecker is a check for NewWorkProber: it returns which Deployments among the results have
// no ready pod, although they are not scaled to zero. It ignores results about other objects.
func DeploymentAvailabilityHealthChecker(request ProbeRequest) error {
	var problems []error
	for _, result := range request.Results {
		if result.Group != "apps" || result.Resource != "deployments" {
			continue
		}
		name := result.Namespace + "/" + result.Name
		replicas, known := result.Integer("Replicas")
		ready, _ := result.Integer("ReadyReplicas")
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("the cluster does not report the replicas of Deployment %s", name))
		case replicas > 0 && ready < 1:
			problems = append(problems, fmt.Errorf("no pod of Deployment %s is ready (0 of %d)", name, replicas))
		}
	}
	return errors.Join(problems...)
}
