package join

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
)

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// Shows: registration/credential-judged
func TestJudge(t *testing.T) {
	good := pairFor(t, identity, noon.Add(time.Hour))
	tests := map[string]struct {
		change  func(f *Facts)
		reason  Reason
		message string
	}{
		"a credential as we write it is valid": {func(*Facts) {}, ReasonValid, ""},
		"no credential": {
			func(f *Facts) { f.Data = nil }, ReasonSecretMissing, "there is no credential for the hub yet",
		},
		"another server": {
			func(f *Facts) { f.Server.Server = "https://new:6443" }, ReasonHubChanged,
			"the stored credential is for hub https://hub:6443 (hub), the bootstrap kubeconfig leads to https://new:6443 (hub)",
		},
		"a renamed cluster entry is another hub": {
			func(f *Facts) { f.Server.Cluster = "renamed" }, ReasonHubChanged, "leads to https://hub:6443 (renamed)",
		},
		"a new CA needs a rewrite only": {
			func(f *Facts) { f.Server.CAData = []byte("new") }, ReasonRewrite, "kubeconfig is missing or not as",
		},
		"a new proxy needs a rewrite only": {
			func(f *Facts) { f.Server.ProxyURL = "http://proxy" }, ReasonRewrite, "kubeconfig is missing or not as",
		},
		"a garbled kubeconfig needs a rewrite only": {
			func(f *Facts) { f.Data["kubeconfig"] = []byte("{") }, ReasonRewrite, "kubeconfig is missing or not as",
		},
		"a missing agent name needs a rewrite only": {
			func(f *Facts) { delete(f.Data, "agent-name") }, ReasonRewrite, "agent-name is missing or not as",
		},
		"no key": {
			func(f *Facts) { f.Pair.Key = nil }, ReasonCertificateUnfit, "the private key holds no PEM block",
		},
		"another agent": {
			func(f *Facts) { f.Identity.Agent = "a2" }, ReasonCertificateUnfit, "wanted is",
		},
		"another cluster": {
			func(f *Facts) { f.Identity.Cluster = "c2" }, ReasonCertificateUnfit, "wanted is",
		},
		"expired": {
			func(f *Facts) { f.Now = noon.Add(2 * time.Hour) }, ReasonCertificateUnfit,
			"the certificate expired at 2026-11-20T13:00:00Z",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := factsOf(t, server, identity, good)
			tc.change(&f)
			got := Judge(f)
			assert.Equal(t, tc.reason, got.Reason, got.Message)
			assert.Contains(t, got.Message, tc.message)
			assert.Equal(t, tc.reason == ReasonValid, got.Valid())
		})
	}
}

// Shows: registration/credential-rewritten
func TestPrepareRewritesWithoutANewCertificate(t *testing.T) {
	good := pairFor(t, identity, noon.Add(time.Hour))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: names.SecretHub},
		Data:       dataOf(t, server, identity, good),
	}
	secret.Data["other"] = []byte("stays")
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	moved := server
	moved.CAData, moved.ProxyURL = []byte("new ca"), "http://proxy:3128"

	credential, verdict, err := Prepare(t.Context(), c, keyOf(secret), Facts{Server: moved, Identity: identity, Now: noon})
	require.NoError(t, err)
	assert.True(t, verdict.Valid())
	assert.Equal(t, good, credential.Pair)
	config, err := credential.RESTConfig()
	require.NoError(t, err)
	assert.Equal(t, "https://hub:6443", config.Host)
	assert.Equal(t, []byte("new ca"), config.CAData)
	assert.Equal(t, good.Certificate, config.CertData)
	assert.Equal(t, good.Key, config.KeyData)

	var after corev1.Secret
	require.NoError(t, c.Get(t.Context(), keyOf(secret), &after))
	assert.True(t, moved.Describes(after.Data["kubeconfig"]))
	assert.Equal(t, []byte("stays"), after.Data["other"])
	assert.Equal(t, good, issue.PairOf(&after))

	again, verdict, err := Prepare(t.Context(), c, keyOf(secret), Facts{Server: moved, Identity: identity, Now: noon})
	require.NoError(t, err)
	assert.True(t, verdict.Valid())
	assert.True(t, again.Same(credential))
	var untouched corev1.Secret
	require.NoError(t, c.Get(t.Context(), keyOf(secret), &untouched))
	assert.Equal(t, after.ResourceVersion, untouched.ResourceVersion)
}

func TestPrepareNeverTouchesAnUnfitCredential(t *testing.T) {
	expired := pairFor(t, identity, noon.Add(-time.Minute))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: names.SecretHub},
		Data:       dataOf(t, server, identity, expired),
	}
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	_, verdict, err := Prepare(t.Context(), c, keyOf(secret), Facts{Server: server, Identity: identity, Now: noon})
	require.NoError(t, err)
	assert.Equal(t, ReasonCertificateUnfit, verdict.Reason)
	var after corev1.Secret
	require.NoError(t, c.Get(t.Context(), keyOf(secret), &after))
	assert.Equal(t, secret.Data, after.Data)
}

// Shows: registration/kubeconfig-bytes-stable
func TestANewCertificateLeavesTheKubeconfigBytesAlone(t *testing.T) {
	first := pairFor(t, identity, noon.Add(time.Hour))
	second := pairFor(t, identity, noon.Add(2*time.Hour))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: names.SecretHub},
		Data:       dataOf(t, server, identity, first),
	}
	// Another agent wrote the same in other words.
	secret.Data["kubeconfig"] = append([]byte("# by hand\n"), secret.Data["kubeconfig"]...)
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	f := Facts{Server: server, Identity: identity, Now: noon}
	seen, err := readSecret(t.Context(), c, keyOf(secret))
	require.NoError(t, err)
	f.take(seen)
	f.Pair = second
	require.NoError(t, store(t.Context(), c, keyOf(secret), f))
	var after corev1.Secret
	require.NoError(t, c.Get(t.Context(), keyOf(secret), &after))
	assert.Equal(t, secret.Data["kubeconfig"], after.Data["kubeconfig"])
	assert.Equal(t, second, issue.PairOf(&after))
}

func TestDecide(t *testing.T) {
	good := pairFor(t, identity, noon.Add(time.Hour))
	fresh := pairFor(t, identity, noon.Add(2*time.Hour))
	valid := factsOf(t, server, identity, good)
	drifted := valid
	drifted.Server.CAData = []byte("new")
	moved := valid
	moved.Server.Server = "https://new"
	refused := valid
	refused.Refused = good.Certificate
	take := issue.Plan{Step: issue.StepTake, Pair: fresh}
	wait := issue.Plan{Step: issue.StepWait}
	tests := map[string]struct {
		facts  Facts
		ready  bool
		answer issue.Plan
		want   plan
	}{
		"a new certificate is stored":                        {valid, true, take, plan{stepStore, fresh}},
		"without a ManagedCluster it is kept aside":          {Facts{}, false, take, plan{stepDefer, fresh}},
		"a valid credential is reported":                     {valid, true, wait, plan{stepReport, good}},
		"without a ManagedCluster none is reported":          {valid, false, wait, plan{step: stepNone}},
		"what stands beside the certificate is rewritten":    {drifted, true, wait, plan{stepRewrite, good}},
		"a credential for another hub is left as it is":      {moved, true, wait, plan{step: stepNone}},
		"while there is none, nothing is done":               {Facts{Server: server, Identity: identity}, true, wait, plan{step: stepNone}},
		"a credential that the hub refuses is left as it is": {refused, true, wait, plan{step: stepNone}},
		"and replaced when its successor is there":           {refused, true, take, plan{stepStore, fresh}},
		"an answer that failed changes nothing that works":   {valid, true, issue.Plan{}, plan{stepReport, good}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, decide(tc.facts, tc.ready, tc.answer))
		})
	}
}

func TestConclude(t *testing.T) {
	rotated := issue.Rotated(issue.PairVerdict{NotBefore: noon, NotAfter: noon})
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("moved"))
	assert.Equal(t, rotated, conclude(issue.Plan{Condition: rotated}, nil))
	assert.Nil(t, conclude(issue.Plan{Condition: rotated}, conflict), "a lost race is nothing to tell")
	told := conclude(issue.Plan{Condition: rotated}, errors.New("disk full"))
	assert.Equal(t, metav1.ConditionFalse, told.Status, "a certificate that is not stored is not rotated")
	assert.Contains(t, told.Message, "disk full")
}

// Shows: registration/cluster-created
func TestNewCluster(t *testing.T) {
	got := newCluster("c1", ClusterOptions{
		Annotations: map[string]string{"agent.open-cluster-management.io/x": "1", "other": "2"},
		ServerURLs:  []string{"https://a", "https://b", "https://a"}, CABundle: []byte("ca"),
	})
	assert.Equal(t, map[string]string{"agent.open-cluster-management.io/x": "1"}, got.Annotations)
	assert.Equal(t, clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{
		{URL: "https://a", CABundle: []byte("ca")}, {URL: "https://b", CABundle: []byte("ca")},
	}}, got.Spec, "the agent never accepts itself")
}

func TestARefusedCertificateIsNotServedWith(t *testing.T) {
	facts := factsOf(t, server, identity, pairFor(t, identity, noon.Add(time.Hour)))
	facts.Refused = pairFor(t, identity, noon.Add(time.Hour)).Certificate
	assert.True(t, Judge(facts).Valid(), "another one was refused")
	facts.Refused = facts.Pair.Certificate
	verdict := Judge(facts)
	assert.Equal(t, ReasonRefused, verdict.Reason)
	assert.Contains(t, verdict.Message, "401")
}

func TestProgressSaysWhoseTurnItIs(t *testing.T) {
	refusal := &metav1.Condition{Status: metav1.ConditionFalse, Message: "csr was denied"}
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("moved"))
	tests := map[string]struct {
		plan     issue.Plan
		failures []error
		want     string
	}{
		"a person's":                  {issue.Plan{Step: issue.StepWait}, nil, "waiting until the hub approves the certificate request of cluster c1"},
		"a failure comes first":       {issue.Plan{Condition: refusal}, []error{nil, errors.New("a"), errors.New("b")}, "a; b"},
		"a lost race is no failure":   {issue.Plan{Condition: refusal}, []error{conflict}, "csr was denied"},
		"a refusal is told":           {issue.Plan{Step: issue.StepWait, Condition: refusal}, nil, "csr was denied"},
		"the certificate has arrived": {issue.Plan{Step: issue.StepTake}, nil, "the hub issued the certificate of cluster c1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, progress("c1", tc.plan, tc.failures...))
		})
	}
}
