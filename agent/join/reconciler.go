package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
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
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler gets the cluster's own hub credential and keeps it fresh.
type Reconciler struct {
	// Hub is the hub, with the bootstrap credential while joining and the cluster's own while serving. Its cache must
	// hold no other request objects than those labelled with this cluster, and while serving no other ManagedCluster.
	Hub cluster.Cluster
	// Agent is the cluster where the agent runs. Its cache must hold the Secrets of Namespace.
	Agent cluster.Cluster
	// Namespace is the agent's namespace.
	Namespace string
	// SecretName is the Secret in Namespace that keeps the credential; empty means names.SecretHub.
	SecretName string
	// Identity is who the agent is, from Identify.
	Identity csr.Identity
	// Server is the hub that the bootstrap kubeconfig leads to.
	Server csr.HubServer
	// ExpirationSeconds asks for a lifetime of the certificate; nil leaves it to the hub.
	ExpirationSeconds *int32
	// Joining says that Hub holds the bootstrap credential: the ManagedCluster is created, no status is written.
	Joining bool
	// Cluster is what a new ManagedCluster says about the cluster; it counts only while joining.
	Cluster ClusterOptions
	// Refused is a certificate, PEM, that the hub answers 401 to: a stored credential with it is replaced, and kept until
	// its successor is there. It counts only while joining; nil when there is none.
	Refused []byte
	// OnProgress is told at the end of every pass while joining what the joining waits for, in words for people. It must
	// not block; nil tells nobody.
	OnProgress func(text string)
	// OnCredential is told the valid credential at the end of every pass that finds one, also when it is the same as
	// before, and while joining only once the ManagedCluster exists. It must not block; nil tells nobody.
	OnCredential func(Credential)
	// Clock tells the time; nil means the wall clock.
	Clock clock.PassiveClock
	// Ahead tells by how much Clock is ahead of the clock of the hub, as far as that is known; nil means not at all.
	// Certificates are judged by the clock of the hub.
	Ahead func() time.Duration
}

// ClusterOptions is what a new ManagedCluster says about the cluster.
type ClusterOptions struct {
	// Annotations are set at creation; only those whose key starts with agent.open-cluster-management.io are.
	Annotations map[string]string
	// ServerURLs are the addresses, https only, at which the cluster can be reached from outside.
	ServerURLs []string
	// CABundle is the CA of those addresses, PEM.
	CABundle []byte
}

// Reconcile does one pass; there is one credential, so the request says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	pass := r.begin()
	ready, clusterErr := r.ensureCluster(ctx)
	answer, askErr := r.issuer().Ask(ctx, pass.task())
	plan := decide(pass.facts, ready, answer.Plan)
	actErr := r.act(ctx, pass, plan, answer)
	publishErr := r.publish(ctx, csr.TellClock(conclude(answer.Plan, actErr), pass.ahead), pass.facts.Now)
	outcome := reconcile.DoneUntil(answer.Wake)
	for _, err := range []error{clusterErr, askErr, actErr, publishErr} {
		outcome = outcome.And(reconcile.RetryBy(ctx, err, hurry(answer)))
	}
	r.tell(ctx, answer.Plan)
	if r.Joining && r.OnProgress != nil {
		r.OnProgress(progress(r.Identity.Cluster, answer.Plan, clusterErr, askErr, actErr))
	}
	return outcome.Settle(pass.facts.Now)
}

// hurry is the instant at which to try again what failed while the certificate in use runs out; zero when it does not.
func hurry(answer csr.Answer) time.Time {
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
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.join").WithOptions(reconcile.Options(1)).
		WatchesRawSource(first).
		WatchesRawSource(source.Kind(r.Agent.GetCache(), client.Object(&corev1.Secret{}),
			handler.EnqueueRequestsFromMapFunc(always), predicate.NewPredicateFuncs(r.ownSecret))).
		WatchesRawSource(source.Kind(r.Hub.GetCache(), client.Object(&certificatesv1.CertificateSigningRequest{}),
			handler.EnqueueRequestsFromMapFunc(always), predicate.NewPredicateFuncs(r.ownRequest)))
	if !r.Joining {
		b = b.WatchesRawSource(source.Kind(r.Hub.GetCache(), client.Object(&clusterv1.ManagedCluster{}),
			handler.EnqueueRequestsFromMapFunc(always), r.conditionGone()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up agent.join: %w", err)
	}
	return nil
}

// ownSecret reports whether a Secret is the credential or its pending key.
func (r *Reconciler) ownSecret(o client.Object) bool {
	own := []string{r.key().Name, csr.PendingName(r.request(), r.SecretName), csr.PendingName(r.request(), "")}
	return o.GetNamespace() == r.Namespace && slices.Contains(own, o.GetName())
}

// key names the Secret that keeps the credential.
func (r *Reconciler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: cmp.Or(r.SecretName, names.SecretHub)}
}

// ownRequest reports whether a request object asks for the credential of a cluster, not of an add-on.
func (r *Reconciler) ownRequest(o client.Object) bool {
	_, addon := o.GetLabels()[names.LabelAddonName]
	return !addon && o.GetLabels()[names.LabelClusterName] == r.Identity.Cluster
}

// conditionGone lets events through at which the condition may be missing: the ManagedCluster is new, or it was there
// before and is not any more.
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

// request is the certificate that is wanted.
func (r *Reconciler) request() csr.Request {
	want := csr.ForCluster(r.Identity.Cluster, r.Identity.Agent)
	want.ExpirationSeconds = r.ExpirationSeconds
	return want
}

func (r *Reconciler) issuer() csr.Issuer {
	user := csr.ClusterUser(r.Identity.Cluster, r.Identity.Agent)
	if r.Joining {
		user = ""
	}
	return csr.Issuer{
		Hub: r.Hub.GetClient(), HubLive: r.Hub.GetAPIReader(),
		Agent: r.Agent.GetClient(), AgentLive: r.Agent.GetAPIReader(),
		Namespace: r.Namespace, Secret: r.SecretName, HubName: r.Server.Name(), User: user,
	}
}

// tell logs what was done, one line per real change.
func (r *Reconciler) tell(ctx context.Context, plan csr.Plan) {
	logger := log.FromContext(ctx).WithValues("cluster", r.Identity.Cluster)
	switch plan.Step {
	case csr.StepStart:
		logger.Info("asked the hub for a certificate")
	case csr.StepTake:
		logger.Info("received a certificate from the hub", "rotateAt", plan.Wake)
	case csr.StepNone, csr.StepForget, csr.StepReserve, csr.StepCreate, csr.StepRecord, csr.StepWait:
	}
}
