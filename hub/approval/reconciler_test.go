package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// failing is a lookup that cannot say whether there is an agent.
type failing struct{}

func (failing) Agent(context.Context, string) (addon.Agent, bool, error) {
	return nil, false, errors.New("the templates cannot be read")
}

// writes counts what a reconciler sends, by verb and kind, and lets fail what failOn names.
type writes struct {
	sent   map[string]int
	failOn string
}

func (w *writes) note(what string) error {
	w.sent[what]++
	if what == w.failOn {
		return errors.New("the hub is down")
	}
	return nil
}

func newReconciler(t *testing.T, objects ...client.Object) (*Reconciler, *writes) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, addonv1alpha1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	w := &writes{sent: map[string]int{}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			kind := "other"
			if _, event := o.(*corev1.Event); event {
				kind = "event"
			}
			if err := w.note("create " + kind); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			if err := w.note("update " + sub); err != nil {
				return err
			}
			return c.Status().Update(ctx, o)
		},
	}).WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).WithIndex(&clusterv1.ManagedCluster{},
		"metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	return &Reconciler{
		Client: c, Live: c, Secrets: c, AddOns: addonapi.Client{Client: c}, Agents: addon.Registry{},
		Trust: approve.Trust{Users: []string{bootstrap}}, Clock: clocktesting.NewFakePassiveClock(now), Random: rand.Reader, Workers: 1,
	}, w
}

func requestOf(csr *certificatesv1.CertificateSigningRequest) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}
}

// Shows: registration/cluster-request-judged
func TestARequestThatIsGoneIsDone(t *testing.T) {
	r, w := newReconciler(t)
	result, err := r.Reconcile(t.Context(), ctrl.Request{})
	require.NoError(t, err)
	assert.Equal(t, ctrl.Result{}, result)
	assert.Empty(t, w.sent)
}

func TestARefusalIsWrittenOnce(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	r, w := newReconciler(t, csr)
	for range 3 {
		result, err := r.Reconcile(t.Context(), requestOf(csr))
		require.NoError(t, err)
		assert.Contains(t, []time.Duration{0, 24*time.Hour - 10*time.Second}, result.RequeueAfter)
	}
	assert.Equal(t, map[string]int{"create event": 1, "update approval": 1}, w.sent)

	t.Run("also by a hub that was restarted", func(t *testing.T) {
		restarted := &Reconciler{
			Client: r.Client, Live: r.Live, AddOns: r.AddOns, Agents: r.Agents, Trust: r.Trust, Clock: r.Clock,
		}
		_, err := restarted.Reconcile(t.Context(), requestOf(csr))
		require.NoError(t, err)
		var events corev1.EventList
		require.NoError(t, r.Client.List(t.Context(), &events))
		require.Len(t, events.Items, 1)
		assert.Equal(t, csr.Name, events.Items[0].InvolvedObject.Name)
		assert.Equal(t, csr.UID, events.Items[0].InvolvedObject.UID)
		assert.Equal(t, "hub.approval", events.Items[0].Source.Component)
	})
}

func TestARefusalThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	r, w := newReconciler(t, csr)
	w.failOn = "create event"
	_, err := r.Reconcile(t.Context(), requestOf(csr))
	require.ErrorContains(t, err, "writing an event about certificate request "+csr.Name)
	w.failOn = ""
	_, err = r.Reconcile(t.Context(), requestOf(csr))
	require.NoError(t, err)
	assert.Equal(t, 2, w.sent["create event"])
}

func TestWhatCannotBeReadIsNeverApproved(t *testing.T) {
	csr := addonRequest(t, kube(), csrs.ClusterUser("c1", "a"))
	r, w := newReconciler(t, csr)
	r.Agents = failing{}
	_, err := r.Reconcile(t.Context(), requestOf(csr))
	require.ErrorContains(t, err, "finding the agent of add-on hello: the templates cannot be read")
	assert.Empty(t, w.sent)
}

func TestAReviewThatFailsApprovesNothing(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), csrs.ClusterUser("c1", "a"))
	r, w := newReconciler(t, csr, accepted())
	w.failOn = "create other"
	_, err := r.Reconcile(t.Context(), requestOf(csr))
	require.ErrorContains(t, err, "reviewing the access of "+csr.Spec.Username)
	assert.Equal(t, map[string]int{"create other": 1}, w.sent)
}

// late is a cache that is behind: its clusters are all accepted.
type late struct{ client.Client }

func (c late) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, opts...)
	if cluster, is := o.(*clusterv1.ManagedCluster); is {
		cluster.Spec.HubAcceptsClient = true
	}
	return err
}

// anyAgent is an agent of which nothing is asked.
type anyAgent = addon.Agent

// approving is an agent that registers as everybody does.
type approving struct{ anyAgent }

func (approving) Agent(context.Context, string) (addon.Agent, bool, error) {
	return approving{}, true, nil
}

func (approving) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{Registrations: []addonv1beta1.RegistrationConfig{kube()}}, nil
}

// unconfigured configures nothing.
type unconfigured struct{ addon.Configurer }

func (unconfigured) Configure(context.Context, *addonv1beta1.ManagedClusterAddOn) (addon.Configuration, error) {
	return addon.Configuration{}, nil
}

// Shows: registration/cluster-request-judged, invariants/lies-approve-nothing
func TestARequestOfADeniedClusterIsNotApprovedFromACacheThatIsBehind(t *testing.T) {
	agent := csrs.ClusterUser("c1", "a")
	for name, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"of the cluster": requestFor(t, csrs.ForCluster("c1", "a"), agent), "of an add-on": addonRequest(t, kube(), agent),
	} {
		t.Run(name, func(t *testing.T) {
			cluster := accepted()
			cluster.Spec.HubAcceptsClient = false
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}}
			r, w := newReconciler(t, csr, cluster, addOn)
			r.Client, r.Agents, r.Configurer = late{r.Client}, approving{}, unconfigured{}
			_, err := r.Reconcile(t.Context(), requestOf(csr))
			require.NoError(t, err)
			assert.Zero(t, w.sent["create other"], "nobody reviews what is refused anyway")
			var now certificatesv1.CertificateSigningRequest
			require.NoError(t, r.Live.Get(t.Context(), client.ObjectKeyFromObject(csr), &now))
			assert.Equal(t, stageOpen, stageOf(&now))
		})
	}
}

// An add-on that was deleted, or created again, while the hub manager looked at an API server that is behind.
//
// Shows: invariants/lies-approve-nothing
func TestARequestOfAnAddOnThatOnlyTheCacheHasIsNotApproved(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", UID: "now"}}
	earlier := addOn.DeepCopy()
	earlier.UID = "earlier"
	for sentence, tc := range map[string]struct {
		live     []client.Object
		approved bool
	}{
		"it is there":     {[]client.Object{addOn}, true},
		"it is gone":      {nil, false},
		"it is a new one": {[]client.Object{earlier}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			csr := addonRequest(t, kube(), csrs.ClusterUser("c1", "a"))
			r, _ := newReconciler(t, csr, accepted(), addOn.DeepCopy())
			server, _ := newReconciler(t, append(tc.live, csr.DeepCopy(), accepted())...)
			var same certificatesv1.CertificateSigningRequest
			require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), &same))
			r.Live, r.Agents, r.Configurer = server.Live, approving{}, unconfigured{}
			_, err := r.Reconcile(t.Context(), requestOf(csr))
			require.NoError(t, err)
			require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), &same))
			assert.Equal(t, tc.approved, stageOf(&same) != stageOpen)
		})
	}
}

func TestAnApprovalChangesNoObjectOfTheCache(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), bootstrap)
	r, w := newReconciler(t, csr)
	f, err := r.observe(t.Context(), csr.Name)
	require.NoError(t, err)
	before := f.csr.DeepCopy()
	w.failOn = "update approval"
	done := r.act(t.Context(), f, decide(f))
	require.Error(t, done.err)
	assert.Equal(t, before, f.csr, "W-19: a failed approval leaves no trace")
	_, err = r.Reconcile(t.Context(), requestOf(csr))
	require.Error(t, err, "and is tried again")
	assert.Equal(t, 2, w.sent["update approval"])
}

// counted reads a counter.
func counted(t *testing.T, vector *prometheus.CounterVec, labels ...string) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, vector.WithLabelValues(labels...).Write(&m))
	return m.GetCounter().GetValue()
}

func TestARefusalIsCountedOncePerRequestAndRule(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), "jane")
	r, w := newReconciler(t, csr)
	registry := prometheus.NewRegistry()
	require.NoError(t, r.counters.register(registry))
	look := func(r *Reconciler) error {
		_, err := r.Reconcile(t.Context(), requestOf(csr))
		return err
	}
	w.failOn = "create event"
	require.Error(t, look(r))
	require.Error(t, look(r))
	assert.InDelta(t, 1, counted(t, r.counters.refused, "cluster", "AwaitingApproval"), 0, "also without an Event")
	w.failOn = ""
	require.NoError(t, look(r))
	require.NoError(t, look(r))
	assert.InDelta(t, 1, counted(t, r.counters.refused, "cluster", "AwaitingApproval"), 0)

	t.Run("also when the same rule is told in other words", func(t *testing.T) {
		f, err := r.observe(t.Context(), csr.Name)
		require.NoError(t, err)
		r.recordEvent(t.Context(), f, &note{reason: "AwaitingApproval", message: "in other words"})
		assert.InDelta(t, 1, counted(t, r.counters.refused, "cluster", "AwaitingApproval"), 0)
		r.recordEvent(t.Context(), f, &note{reason: "Another", message: "in other words"})
		assert.InDelta(t, 1, counted(t, r.counters.refused, "cluster", "Another"), 0)
	})
	t.Run("and not again by a hub that was restarted", func(t *testing.T) {
		restarted := &Reconciler{
			Client: r.Client, Live: r.Live, AddOns: r.AddOns, Agents: r.Agents, Trust: r.Trust, Clock: r.Clock,
		}
		require.NoError(t, restarted.counters.register(nil))
		require.NoError(t, look(restarted))
		assert.InDelta(t, 0, counted(t, restarted.counters.refused, "cluster", "AwaitingApproval"), 0)
	})
	t.Run("and a second hub manager of the same process counts with the first", func(t *testing.T) {
		second := &Reconciler{}
		require.NoError(t, second.counters.register(registry))
		second.counters.countRefused(csr, "Another")
		assert.InDelta(t, 2, counted(t, r.counters.refused, "cluster", "Another"), 0)
	})
	t.Run("and a name that is taken by something else is told", func(t *testing.T) {
		taken := prometheus.NewRegistry()
		require.NoError(t, taken.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "spokelet_csr_refused_total"})))
		require.ErrorContains(t, (&counters{}).register(taken), "registering the counters of certificate requests")
	})
}

func TestAnApprovalIsCountedWhenItIsWritten(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), bootstrap)
	r, w := newReconciler(t, csr)
	require.NoError(t, r.counters.register(nil))
	w.failOn = "update approval"
	_, err := r.Reconcile(t.Context(), requestOf(csr))
	require.Error(t, err)
	assert.InDelta(t, 0, counted(t, r.counters.approved, "cluster"), 0)
	w.failOn = ""
	_, err = r.Reconcile(t.Context(), requestOf(csr))
	require.NoError(t, err)
	assert.InDelta(t, 1, counted(t, r.counters.approved, "cluster"), 0)
}

func TestEventsHavePossibleNamesWhateverRequestsAreCalled(t *testing.T) {
	for name, want := range map[string]string{
		"addon-c1-hello-x":        "addon-c1-hello-x",
		"In Capitals: ä/b":        "n--apitals----b",
		"...":                     "request",
		"":                        "request",
		strings.Repeat("é", 1000): "request",
		strings.Repeat("x", 1000): strings.Repeat("x", 200),
	} {
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
		got := eventName(csr, &note{reason: "R"})
		assert.Empty(t, validation.IsDNS1123Subdomain(got), got)
		assert.Equal(t, want, got[:strings.LastIndex(got, ".")])
	}
}
