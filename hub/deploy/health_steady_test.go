package deploy

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

func agentDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "agent", "namespace": "ns"},
		"spec": map[string]any{"replicas": int64(1)},
	}}
}

// of is a rendering of a template with a hash.
func of(hash string, objects ...*unstructured.Unstructured) addon.Rendering {
	return addon.Rendering{Objects: objects, Configs: []addon.ChosenConfig{{
		ConfigGroupResource: confighash.Template(), ConfigSpecHash: addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Name: "t"}, SpecHash: hash,
		},
	}, {
		ConfigGroupResource: confighash.DeploymentConfig(), ConfigSpecHash: addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "ns", Name: "c"}, SpecHash: "config " + hash,
		},
	}}}
}

// rolledOut is an add-on whose works brought hash "one" with one way to tell health.
func rolledOut(t *testing.T, health addon.HealthProbe) facts {
	t.Helper()
	f := factsOf()
	f.rendering, f.setup.Health = of("one", agentDeployment()), health
	f, _ = simulate(t, f)
	f.addOn.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
	if health == addon.HealthLease {
		f.addOn.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeLease
	}
	return f
}

func TestTheWayToTellHealthChangesWithARolloutOnly(t *testing.T) {
	const workloads, lease = addon.HealthWorkloads, addon.HealthLease
	tests := map[string]struct {
		was, isWanted addon.HealthProbe
		change        func(*facts)
		use           addon.HealthProbe
		pending       addon.HealthProbe
	}{
		"a new add-on is told as its template asks": {
			workloads, lease, func(f *facts) { f.works, f.addOn.Status.HealthCheck.Mode = nil, "" }, lease, "",
		},
		"an annotation in place changes nothing":    {workloads, lease, func(*facts) {}, workloads, lease},
		"nor does its removal":                      {lease, workloads, func(*facts) {}, lease, workloads},
		"what is as the template asks stays":        {workloads, workloads, func(*facts) {}, workloads, ""},
		"so does a lease":                           {lease, lease, func(*facts) {}, lease, ""},
		"a rollout of the template brings it":       {workloads, lease, func(f *facts) { f.rendering = of("two", agentDeployment()) }, lease, ""},
		"and takes it back":                         {lease, workloads, func(f *facts) { f.rendering = of("two", agentDeployment()) }, workloads, ""},
		"while nothing may be rendered, it is kept": {workloads, lease, func(f *facts) { f.renderErr = errors.New("held") }, workloads, lease},
		"another configuration is no rollout of the template": {
			workloads, lease, func(f *facts) { f.rendering.Configs[1].SpecHash = "x" }, workloads, lease,
		},
		"works that ask for the status of workloads say what the default of the API does not": {
			workloads, workloads,
			func(f *facts) { f.addOn.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeLease }, workloads, "",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := rolledOut(t, test.was)
			f.setup.Health = test.isWanted
			test.change(&f)
			use, pending := steadyHealth(f)
			assert.Equal(t, test.use, use)
			assert.Equal(t, test.pending, pending)
		})
	}
}

// A program has no rollout: the works that its former version wrote have no hash of a template.
func TestTheProbeOfAProgramCountsAtOnce(t *testing.T) {
	const workloads, lease, work = addon.HealthWorkloads, addon.HealthLease, addon.HealthWork
	for sentence, test := range map[string]struct{ was, isWanted addon.HealthProbe }{
		"a lease in place of workloads":  {workloads, lease},
		"workloads in place of a lease":  {lease, workloads},
		"a lease in place of a check":    {work, lease},
		"a check in place of a lease":    {lease, work},
		"nothing in place of workloads":  {workloads, addon.HealthCustom},
		"a lease in place of itself":     {lease, lease},
		"workloads in place of nothing":  {addon.HealthCustom, workloads},
		"workloads in place of a check":  {work, workloads},
		"Deployments in place of others": {workloads, addon.HealthDeployments},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.rendering, f.setup.Health = addon.Rendering{Objects: of("", agentDeployment()).Objects}, test.was
			f, _ = simulate(t, f)
			require.NotEmpty(t, f.works)
			f.addOn.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
			if test.was == lease {
				f.addOn.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeLease
			}
			f.setup.Health = test.isWanted
			use, pending := steadyHealth(f)
			assert.Equal(t, test.isWanted, use)
			assert.Empty(t, pending)
			f.renderErr = errors.New("chart")
			use, _ = steadyHealth(f)
			assert.Equal(t, test.isWanted, use)
		})
	}
}

func TestAWayToTellHealthThatDoesNotCountYetIsTold(t *testing.T) {
	f := rolledOut(t, addon.HealthWorkloads)
	f.pendingHealth = addon.HealthLease
	for _, work := range f.works {
		work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue}}
	}
	p := decide(f)
	after := conclude(f, p, results{works: make([]error, len(p.works))})
	condition := meta.FindStatusCondition(after.Status.Conditions, addonv1beta1.ManagedClusterAddOnManifestApplied)
	require.NotNil(t, condition)
	assert.Contains(t, condition.Message, "annotation addon.spokelet.io/health-probe")
	assert.Equal(t, addonv1beta1.HealthCheckModeCustomized, after.Status.HealthCheck.Mode)
}

// edited is an agent whose author asks for another probe than the one that counts.
type edited struct{ addon.Agent }

func (edited) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{Setup: addon.Setup{Health: addon.HealthWorkloads}, NextHealth: addon.HealthLease}, nil
}

func (edited) Render(context.Context, addon.Request) (addon.Rendering, error) {
	return of("one", agentDeployment()), nil
}

// Shows: hub/another-probe-is-told
func TestAProbeThatCountsLaterIsToldOnTheAddOn(t *testing.T) {
	f := rolledOut(t, addon.HealthWorkloads)
	(&Reconciler{}).ask(t.Context(), edited{}, &f, false)
	require.NoError(t, f.renderErr)
	assert.Equal(t, addon.HealthWorkloads, f.setup.Health)
	assert.Equal(t, addon.HealthLease, f.pendingHealth)
}
