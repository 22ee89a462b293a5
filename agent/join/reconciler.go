package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// Reconciler gets the hub credential of the cluster and renews it.
type Reconciler struct {
	// Hub is the hub, with the bootstrap credential while joining and the cluster's own while serving. Its cache must
	// hold no other ManagedCluster while serving.
	Hub cluster.Cluster
	// Agent is the cluster where the agent runs. Its cache must hold the Secrets of Namespace.
	Agent cluster.Cluster
	// Namespace is the agent's namespace.
	Namespace string
	// SecretName is the Secret in Namespace that keeps the credential; empty means names.SecretHub.
	SecretName string
	// Identity is the identity of the agent, from Identify.
	Identity csr.Identity
	// Server is the hub that the bootstrap kubeconfig leads to.
	Server issue.HubServer
	// ExpirationSeconds is the requested lifetime of the certificate; nil leaves it to the hub.
	ExpirationSeconds *int32
	// Joining is set when Hub uses the bootstrap credential: the ManagedCluster is created, no status is written.
	Joining bool
	// Cluster describes a new ManagedCluster; it is used only while joining.
	Cluster ClusterOptions
	// Refused is a certificate, PEM, that the hub answers 401 to: a stored credential with it is replaced, and kept until
	// the new one is there. It is used only while joining; nil when there is none.
	Refused []byte
	// OnProgress is called at the end of every pass while joining with a text that explains what the agent waits for. It
	// must not block. Optional.
	OnProgress func(text string)
	// OnCredential is called at the end of every pass that finds a valid credential, also when it is the same as before;
	// while joining only once the ManagedCluster exists. It must not block. Optional.
	OnCredential func(Credential)
	// Ends is told when the certificate in use ends. Optional.
	Ends *expiry.Ends
	// Clock is the clock of the agent; nil means the real clock.
	Clock clock.PassiveClock
	// Ahead returns the time by which Clock is ahead of the clock of the hub, as far as it is known; nil means zero.
	// Certificates are judged by the clock of the hub.
	Ahead func() time.Duration

	// requests watches the request object that waits for its certificate.
	requests *watch.Named
}

// ClusterOptions describe a new ManagedCluster.
type ClusterOptions struct {
	// Annotations are set at creation; only those whose key starts with agent.open-cluster-management.io are.
	Annotations map[string]string
	// ServerURLs are the external addresses of the API server of the cluster, https only.
	ServerURLs []string
	// CABundle is the CA of those addresses, PEM.
	CABundle []byte
}

// Reconcile does one pass; there is one credential, so the request is ignored.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	pass := r.begin()
	ready, clusterErr := r.ensureCluster(ctx)
	answer, askErr := r.issuer().Ask(ctx, pass.task())
	r.requests.Await(ctrl.Request{NamespacedName: r.key()}, answer.Awaited...)
	plan := decide(pass.facts, ready, answer.Plan)
	actErr := r.act(ctx, pass, plan, answer)
	if askErr == nil {
		verdict := issue.JudgePair(pass.facts.Pair, r.request(), pass.facts.Now)
		r.Ends.Set(expiry.Agent, "", causes.Life{From: verdict.NotBefore, To: verdict.NotAfter})
	}
	publishErr := r.publish(ctx, issue.WithClockNote(conclude(answer.Plan, actErr), pass.ahead), pass.facts.Now)
	look := issue.LookAtClock(pass.ahead, pass.facts.Now, answer.Wake)
	outcome := reconcile.DoneUntil(reconcile.Earliest(answer.Wake, look))
	for _, err := range []error{clusterErr, askErr, actErr, publishErr} {
		outcome = outcome.And(reconcile.RetryBy(ctx, err, deadline(answer)))
	}
	r.logStep(ctx, answer.Plan)
	if r.Joining && r.OnProgress != nil {
		r.OnProgress(progress(r.Identity.Cluster, answer.Plan, clusterErr, askErr, actErr))
	}
	return outcome.Settle(pass.facts.Now)
}

// deadline returns the latest time of the next attempt while the certificate in use is about to expire; zero otherwise.
func deadline(answer issue.Answer) time.Time {
	if answer.Urgent {
		return answer.Wake
	}
	return time.Time{}
}

// SetupWithManager adds the reconciler to mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Hub == nil || r.Agent == nil || r.Namespace == "" {
		return errors.New("setting up agent.join: Hub, Agent and Namespace are needed")
	}
	if err := checkIdentity(r.Identity); err != nil {
		return fmt.Errorf("setting up agent.join: %w", err)
	}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Ahead == nil {
		r.Ahead = func() time.Duration { return 0 }
	}
	one := ctrl.Request{NamespacedName: r.key()}
	always := func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{one} }
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queue.Add(one)
		return nil
	})
	var err error
	if r.requests, err = watch.NewNamed("agent.join", r.Hub, issue.RequestKind()); err != nil {
		return fmt.Errorf("setting up agent.join: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.join").WithOptions(reconcile.Options(1)).
		WatchesRawSource(first).
		WatchesRawSource(r.requests).
		WatchesRawSource(source.Kind(r.Agent.GetCache(), client.Object(&corev1.Secret{}),
			handler.EnqueueRequestsFromMapFunc(always), predicate.NewPredicateFuncs(r.ownSecret)))
	if !r.Joining {
		b = b.WatchesRawSource(source.Kind(r.Hub.GetCache(), client.Object(&clusterv1.ManagedCluster{}),
			handler.EnqueueRequestsFromMapFunc(always), r.conditionGone()))
	}
	if err = b.Complete(r); err != nil {
		return fmt.Errorf("setting up agent.join: %w", err)
	}
	return nil
}

// ownSecret reports whether a Secret is the credential or its pending key.
func (r *Reconciler) ownSecret(o client.Object) bool {
	own := []string{r.key().Name, issue.PendingName(r.request(), r.SecretName), issue.PendingName(r.request(), "")}
	return o.GetNamespace() == r.Namespace && slices.Contains(own, o.GetName())
}

// key names the credential Secret.
func (r *Reconciler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: cmp.Or(r.SecretName, names.SecretHub)}
}

// conditionGone selects events after which the condition may be missing: the ManagedCluster is new, or was updated
// without the condition.
func (r *Reconciler) conditionGone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetName() == r.Identity.Cluster },
		UpdateFunc: func(e event.UpdateEvent) bool {
			now, ok := e.ObjectNew.(*clusterv1.ManagedCluster)
			return ok && now.Name == r.Identity.Cluster &&
				meta.FindStatusCondition(now.Status.Conditions, csr.ConditionRotated) == nil
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// request returns the request for the certificate.
func (r *Reconciler) request() csr.Request {
	want := csr.ForCluster(r.Identity.Cluster, r.Identity.Agent)
	want.ExpirationSeconds = r.ExpirationSeconds
	return want
}

func (r *Reconciler) issuer() issue.Issuer {
	user := csr.ClusterUser(r.Identity.Cluster, r.Identity.Agent)
	if r.Joining {
		user = ""
	}
	return issue.Issuer{
		Hub: r.Hub.GetClient(), HubLive: r.Hub.GetAPIReader(), HubSeen: r.requests,
		Agent: r.Agent.GetClient(), AgentLive: r.Agent.GetAPIReader(),
		Namespace: r.Namespace, Secret: r.SecretName, HubName: r.Server.Name(), User: user,
	}
}

// logStep logs a change, one line for each.
func (r *Reconciler) logStep(ctx context.Context, plan issue.Plan) {
	logger := log.FromContext(ctx).WithValues("cluster", r.Identity.Cluster)
	switch plan.Step {
	case issue.StepStart:
		logger.Info("asked the hub for a certificate")
	case issue.StepTake:
		logger.Info("received a certificate from the hub", "rotateAt", plan.Wake)
	case issue.StepNone, issue.StepForget, issue.StepReserve, issue.StepCreate, issue.StepRecord, issue.StepWait:
	}
}
