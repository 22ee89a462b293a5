package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// budget is how long the API server may judge a write, in the mean.
	budget = time.Millisecond
	// settling is how long the API server may take until policies are in force, or no longer.
	settling = time.Minute
	// look is how often that is looked at.
	look = 50 * time.Millisecond
)

// Options configure a run.
type Options struct {
	// Rounds is how often the policies are turned on and off, and Writes how many writes of each kind follow each time.
	Rounds, Writes int
}

// DefaultOptions are those of the command.
func DefaultOptions() Options { return Options{Rounds: 5, Writes: 100} }

// run is one run on one API server.
type run struct {
	Options
	plane *sandbox.ControlPlane
	admin client.Client
	// took are the times of each kind of write, with policies and without.
	took map[string]*[2][]time.Duration
	// judged holds what the API server needed for the policies of each kind of write.
	judged map[string]judgement
}

// judgement is how many writes an API server judged by policies, and how long that took by its own clock.
type judgement struct{ writes, seconds float64 }

// Run measures and returns the figures: per kind of write the medians with and without policies, and how long the API
// server judged it by its own clock, which has a budget. It fails if it could not measure.
func Run(ctx context.Context, options Options, log io.Writer) ([]measure.Figure, error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "policies"})
	if err != nil {
		return nil, fmt.Errorf("starting the hub: %w", err)
	}
	defer plane.Stop()
	r := &run{Options: options, plane: plane, took: map[string]*[2][]time.Duration{}, judged: map[string]judgement{}}
	if r.admin, err = r.client(plane.Admin()); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing the hub: %w", err)
	}
	table := &measure.Table{Log: log}
	for range options.Rounds {
		for state := range 2 {
			if err := r.round(ctx, state); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range r.writes() {
		with, without := measure.Percentile(r.took[w.name][0], 0.5), measure.Percentile(r.took[w.name][1], 0.5)
		table.Note(w.name+", p50 with and without policies", fmt.Sprintf("%s, %s",
			with.Round(10*time.Microsecond), without.Round(10*time.Microsecond)), "", true)
		j := r.judged[w.name]
		mean := time.Duration(j.seconds / max(1, j.writes) * float64(time.Second))
		table.Note(w.name+", of that in policies, mean", mean.Round(10*time.Microsecond).String(), budget.String(),
			mean < budget)
	}
	return table.Figures, nil
}

// client returns a client of the kinds of the hub without a limit of requests.
func (r *run) client(config *rest.Config) (client.Client, error) {
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return c, nil
}

// as returns a client of a user.
func (r *run) as(user string, groups ...string) (client.Client, error) {
	config := r.plane.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return r.client(config)
}

// prepare installs definitions, policies and rights, and the objects that are written.
func (r *run) prepare(ctx context.Context) error {
	for _, docs := range [][][]byte{manifests.CRDs(), manifests.Hub()} {
		if err := r.plane.Apply(ctx, docs...); err != nil {
			return err
		}
	}
	// The rights of an agent, which the hub manager gives it on a real hub.
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bench-agent"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groupOfAgent}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: binding.ObjectMeta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Verbs: []string{"*"}, Resources: []string{
			"managedclusters", "managedclusters/status", "managedclusteraddons/status", "manifestworks",
			"manifestworks/status", "certificatesigningrequests",
		},
	}}}
	for _, object := range append([]client.Object{role, binding}, objects()...) {
		if err := r.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// round turns the policies on or off and sends the writes.
func (r *run) round(ctx context.Context, state int) error {
	if err := r.turn(ctx, state == 0); err != nil {
		return fmt.Errorf("turning the policies on or off: %w", err)
	}
	for _, w := range r.writes() {
		c, err := r.as(w.user, w.groups...)
		if err != nil {
			return err
		}
		if r.took[w.name] == nil {
			r.took[w.name] = &[2][]time.Duration{}
		}
		before, err := r.judgements(ctx)
		if err != nil {
			return err
		}
		// The first write of a client opens its connection.
		for n := range r.Writes + 1 {
			began := time.Now()
			if err := w.send(ctx, c, n); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if n > 0 {
				r.took[w.name][state] = append(r.took[w.name][state], time.Since(began))
			}
		}
		after, err := r.judgements(ctx)
		if err != nil {
			return err
		}
		if j := r.judged[w.name]; state == 0 {
			r.judged[w.name] = judgement{j.writes + after.writes - before.writes, j.seconds + after.seconds - before.seconds}
		}
	}
	return nil
}

// judgements reads what the API server needed for policies since its start. Nothing else writes to it meanwhile but its
// own controllers, now and then.
func (r *run) judgements(ctx context.Context) (judgement, error) {
	families, err := r.plane.Metrics(ctx)
	if err != nil {
		return judgement{}, err
	}
	var all judgement
	for _, m := range families["apiserver_admission_controller_admission_duration_seconds"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["name"] == "ValidatingAdmissionPolicy" && labels["type"] == "validate" {
			all.writes += float64(m.GetHistogram().GetSampleCount())
			all.seconds += m.GetHistogram().GetSampleSum()
		}
	}
	return all, nil
}

// turn creates or deletes the bindings of the policies, and waits until the API server acts on that.
func (r *run) turn(ctx context.Context, on bool) error {
	var bindings []*unstructured.Unstructured
	for _, doc := range manifests.Policies() {
		decoded, err := sandbox.Decode(doc)
		if err != nil {
			return fmt.Errorf("reading the policies: %w", err)
		}
		for _, object := range decoded {
			if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
				bindings = append(bindings, object)
			}
		}
	}
	if len(bindings) == 0 {
		return errors.New("there is no binding")
	}
	for _, binding := range bindings {
		var err error
		if on {
			err = client.IgnoreAlreadyExists(r.admin.Create(ctx, binding))
		} else {
			err = client.IgnoreNotFound(r.admin.Delete(ctx, binding))
		}
		if err != nil {
			return fmt.Errorf("binding %s: %w", binding.GetName(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, look, settling, true, func(ctx context.Context) (bool, error) {
		reserved := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "managed-clusters"}}
		err := r.admin.Create(ctx, reserved, client.DryRunAll)
		if err != nil && !apierrors.IsInvalid(err) {
			return false, fmt.Errorf("trying whether the policies are in force: %w", err)
		}
		return apierrors.IsInvalid(err) == on, nil
	})
}

// manager is the user of the hub manager.
const manager = "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountManager
