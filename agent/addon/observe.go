package addon

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// side is one of the two clusters where Secrets and leases of add-ons are.
type side string

const (
	// sideAgent is the cluster where the agent runs.
	sideAgent side = "agent"
	// sideSpoke is the managed cluster, where the agent does not run on it.
	sideSpoke side = "spoke"
)

// facts is everything that a pass depends on.
type facts struct {
	now time.Time
	// ahead is by how much our clock is ahead of that of the hub.
	ahead time.Duration
	// name is the name of the add-on, cluster that of its cluster.
	name, cluster string
	// agent names this agent where it runs: its namespace and the Secret of its own credential.
	agent string
	// split reports whether the agent runs on another cluster than the managed one.
	split bool
	// addon is nil when there certainly is none.
	addon *addonv1beta1.ManagedClusterAddOn
	// clusterUnknown tells that the hub has lost sight of the cluster, so that it says how the add-ons are.
	clusterUnknown bool
	// secrets are those that we made for the add-on.
	secrets []held
	// lease is what is known of the lease of the add-on agent.
	lease observation
	// scene is what was seen of the add-on agent that does not renew its lease, lookAgain when to look again.
	scene     scene
	lookAgain time.Time
	// workloads is why workloads of the add-on are not ready, empty when nothing can be said; nil while nobody looked.
	workloads *string
	// grace is how long the agent may stay silent.
	grace time.Duration
	// driver says how kubeClient registrations get their credentials.
	driver string
	// expirationSeconds is asked for in every request.
	expirationSeconds *int32
}

// hubNow is the instant of the pass by the clock of the hub.
func (f facts) hubNow() time.Time { return f.now.Add(-f.ahead) }

// ours turns an instant by the clock of the hub into one by our clock.
func (f facts) ours(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(f.ahead)
}

// held is a Secret that we made.
type held struct {
	side    side
	key     types.NamespacedName
	uid     types.UID
	pending bool
}

func (r *Reconciler) observe(ctx context.Context, addon string) (facts, error) {
	f := facts{
		now: r.Clock.Now(), ahead: r.Ahead(), name: addon, cluster: r.Cluster, split: len(r.sides) > 1, grace: r.LeaseGrace,
		agent: r.Namespace + "/" + r.SecretName, expirationSeconds: r.ExpirationSeconds, driver: r.Driver,
	}
	var err error
	if f.secrets, err = r.observeSecrets(ctx, f); err != nil {
		return f, err
	}
	if f.addon, err = r.observeAddOn(ctx, addon, len(f.secrets) > 0); err != nil || f.addon == nil {
		return f, err
	}
	var mc clusterv1.ManagedCluster
	if err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Cluster}, &mc); err != nil {
		if !apierrors.IsNotFound(err) {
			return f, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
		}
	}
	f.clusterUnknown = isUnknown(&mc)
	f.lease = r.watch.get(placeOf(f).lease(addon))
	return f, nil
}

// observeAddOn returns nil when there certainly is no such add-on. Where that would cost Secrets, the API server is
// asked, and only its answer about this very object counts: a hub that does not know the kind is a hub being repaired.
func (r *Reconciler) observeAddOn(
	ctx context.Context, name string, certain bool,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	key := types.NamespacedName{Namespace: r.Cluster, Name: name}
	addon, err := r.addons.GetAddOn(ctx, key)
	if err == nil || !apierrors.IsNotFound(err) {
		return addon, err
	}
	if !certain {
		return nil, nil //nolint:nilnil // no add-on is a good answer
	}
	err = r.Hub.GetAPIReader().Get(ctx, key, r.addons.WatchedAddOn())
	switch {
	case err == nil:
		return nil, apierrors.NewConflict(addonv1beta1.Resource("managedclusteraddons"), name,
			fmt.Errorf("it came back and is not in the cache yet"))
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, nil //nolint:nilnil // no add-on is a good answer
	}
	return nil, fmt.Errorf("making sure that add-on %s is gone: %w", key, err)
}

// observeSecrets finds the Secrets that we made for the add-on, wherever they are.
func (r *Reconciler) observeSecrets(ctx context.Context, f facts) ([]held, error) {
	var found []held
	for name, side := range r.sides {
		var list corev1.SecretList
		err := side.GetClient().List(ctx, &list, client.HasLabels{names.LabelCredential},
			client.MatchingLabels{names.LabelClusterName: r.Cluster, names.LabelAddonName: f.name})
		if err != nil {
			return nil, fmt.Errorf("listing the secrets of add-on %s: %w", f.name, err)
		}
		for i := range list.Items {
			secret := &list.Items[i]
			if isOfOthers(secret, f, name, r.Server.Name()) {
				continue
			}
			found = append(found, held{
				side: name, key: client.ObjectKeyFromObject(secret), uid: secret.UID,
				pending: secret.Labels[names.LabelCredential] == names.CredentialPending,
			})
		}
	}
	return found, nil
}

// stored is the credential Secret of one registration as it was read last; nil when there is none.
type stored struct {
	secret *corev1.Secret
	renew  bool
}

// load reads the credential Secret of a registration.
func (r *Reconciler) load(
	ctx context.Context, f facts, on side, reg registration, live bool,
) (stored, error) {
	reader := client.Reader(r.sides[on].GetClient())
	if live {
		reader = r.sides[on].GetAPIReader()
	}
	var secret corev1.Secret
	switch err := reader.Get(ctx, reg.secret, &secret); {
	case apierrors.IsNotFound(err):
		return stored{}, nil
	case err != nil:
		return stored{}, fmt.Errorf("reading secret %s: %w", reg.secret, err)
	}
	if err := r.checkOwner(ctx, &secret, f, on); err != nil {
		return stored{}, err
	}
	return stored{secret: secret.DeepCopy(), renew: fromOtherHub(&secret, r.Server)}, nil
}

// foreignError says that a Secret that we need belongs to somebody else.
type foreignError struct {
	message string
	// until are what is to be watched: when one of them changes, the Secret may be ours.
	until []target
}

// Error says whose the Secret is and what to do.
func (e foreignError) Error() string { return e.message }

// checkOwner refuses a Secret of another add-on or agent. What an agent left behind whose namespace is gone is ours.
func (r *Reconciler) checkOwner(ctx context.Context, secret *corev1.Secret, f facts, on side) error {
	owner := ownerOf(secret, f, on, r.Server.Name())
	if owner.foreign == "" {
		return nil
	}
	err := foreignError{message: owner.foreign, until: []target{
		{side: on, kind: kindSecret, namespace: secret.Namespace, name: secret.Name},
	}}
	if owner.unlessGone == "" {
		return err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kindNamespace)))
	switch readErr := r.sides[on].GetAPIReader().Get(ctx, types.NamespacedName{Name: owner.unlessGone}, namespace); {
	case apierrors.IsNotFound(readErr):
		return nil
	case readErr != nil:
		return fmt.Errorf("finding out whether the agent that secret %s/%s belongs to is still there: %w",
			secret.Namespace, secret.Name, readErr)
	}
	err.until = append(err.until, target{side: on, kind: kindNamespace, name: owner.unlessGone})
	return err
}

// fromOtherHub reports whether a credential is from another hub. A Secret that another agent made does not say it; then
// the kubeconfig does, and where there is none, nothing is known against it.
func fromOtherHub(secret *corev1.Secret, server csr.HubServer) bool {
	if name, ok := secret.Annotations[names.AnnotationHub]; ok {
		return name != server.Name()
	}
	have, err := csr.ParseHubServer(secret.Data[csr.KeyKubeconfig])
	return err == nil && !have.SameHub(server)
}

// leaseOf returns the lease that is seen; nil when it is absent.
func leaseOf(s observation) *coordinationv1.Lease {
	l, _ := s.object.(*coordinationv1.Lease)
	return l
}
