package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// side is one of the two clusters with Secrets and leases of add-ons.
type side string

const (
	// sideAgent is the cluster where the agent runs.
	sideAgent side = "agent"
	// sideSpoke is the managed cluster, where the agent does not run on it.
	sideSpoke side = "spoke"
)

// facts are the inputs of the decision of a pass.
type facts struct {
	now time.Time
	// ahead is the time by which our clock is ahead of that of the hub, and hubKnown reports whether that is known.
	ahead    time.Duration
	hubKnown bool
	// name is the name of the add-on, cluster that of its cluster.
	name, cluster string
	// agent identifies this agent: its namespace and the Secret of its own credential.
	agent string
	// reserved are the names of Secrets that no add-on gets.
	reserved []string
	// split is set when the agent runs on another cluster than the managed one.
	split bool
	// hostedNamespaces are the namespaces in which hosted add-ons are served; empty means all.
	hostedNamespaces []string
	// addon is nil only if it certainly does not exist.
	addon *addonv1beta1.ManagedClusterAddOn
	// clusterUnknown is set while the hub reports the cluster as Unknown: then the hub writes the health of its add-ons.
	clusterUnknown bool
	// secrets are the Secrets that this agent created for the add-on.
	secrets []ownedSecret
	// lease is the last observation of the lease of the add-on agent.
	lease observation
	// snapshot is the observed state of an add-on agent that does not renew its lease; nextInspection is its next read.
	snapshot       snapshot
	nextInspection time.Time
	// workloads explains why workloads of the add-on are not ready; empty when the cause is unknown, nil before the first
	// inspection.
	workloads *string
	// grace is the time without a renewal after which the add-on becomes unavailable.
	grace time.Duration
	// driver is the driver of kubeClient registrations.
	driver string
	// expirationSeconds is the lifetime in every request.
	expirationSeconds *int32
}

// hubNow is the time of the pass by the clock of the hub.
func (f facts) hubNow() time.Time { return f.now.Add(-f.ahead) }

// lookAtClock returns when credentials are judged again because one of the two clocks is wrong.
func (f facts) lookAtClock(p plan) reconcile.Outcome {
	if len(p.serve) == 0 {
		return reconcile.Done()
	}
	return reconcile.DoneUntil(csr.LookAtClock(f.ahead, f.now, time.Time{}))
}

// toLocal converts a time by the clock of the hub to our clock.
func (f facts) toLocal(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(f.ahead)
}

// ownedSecret is a Secret that this agent created.
type ownedSecret struct {
	side    side
	key     types.NamespacedName
	uid     types.UID
	pending bool
	// both is set if the Secret was found on both sides, which are the same cluster then: an agent that reaches the
	// cluster that it runs on by a kubeconfig.
	both bool
}

// on reports whether the Secret is on a side.
func (s ownedSecret) on(one side) bool { return s.both || s.side == one }

// readClocks sets the times of a pass.
func (r *Reconciler) readClocks(f *facts) {
	f.now = r.Clock.Now()
	f.ahead, f.hubKnown = r.Ahead()
}

func (r *Reconciler) observe(ctx context.Context, addon string) (facts, error) {
	f := facts{
		name: addon, cluster: r.Cluster, split: len(r.sides) > 1, grace: r.LeaseGrace,
		agent: r.Namespace + "/" + r.SecretName, expirationSeconds: r.ExpirationSeconds, driver: r.Driver,
		hostedNamespaces: r.HostedNamespaces, reserved: r.Reserved,
	}
	r.readClocks(&f)
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

// observeAddOn returns nil if the add-on certainly does not exist. Where its absence would delete Secrets, the API
// server must confirm it for this very object: a hub that does not serve the kind is being repaired.
func (r *Reconciler) observeAddOn(
	ctx context.Context, name string, certain bool,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	key := types.NamespacedName{Namespace: r.Cluster, Name: name}
	addon, err := r.addons.GetAddOn(ctx, key)
	if err == nil || !apierrors.IsNotFound(err) {
		return addon, err
	}
	if !certain {
		return nil, nil // no add-on is a good answer
	}
	err = r.Hub.GetAPIReader().Get(ctx, key, r.addons.WatchedAddOn())
	switch {
	case err == nil:
		return nil, reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", name)
	case reconcile.ObjectGone(err):
		return nil, nil // no add-on is a good answer
	}
	return nil, fmt.Errorf("making sure that add-on %s is gone: %w", key, err)
}

// observeSecrets finds the Secrets that this agent created for the add-on, on both clusters.
func (r *Reconciler) observeSecrets(ctx context.Context, f facts) ([]ownedSecret, error) {
	var found []ownedSecret
	for name, side := range r.sides {
		var list corev1.SecretList
		err := side.GetClient().List(ctx, &list, client.HasLabels{names.LabelCredential},
			client.MatchingLabels{names.LabelClusterName: r.Cluster, names.LabelAddonName: f.name})
		if err != nil {
			return nil, fmt.Errorf("listing the secrets of add-on %s: %w", f.name, err)
		}
		for i := range list.Items {
			secret := &list.Items[i]
			if isOfOthers(secret, f, name, r.Server.Name()) || slices.Contains(f.reserved, secret.Name) {
				continue
			}
			found = append(found, ownedSecret{
				side: name, key: client.ObjectKeyFromObject(secret), uid: secret.UID,
				pending: secret.Labels[names.LabelCredential] == names.CredentialPending,
			})
		}
	}
	return mergeSides(found), nil
}

// mergeSides makes one of the two entries of a Secret that was found on both sides.
func mergeSides(found []ownedSecret) []ownedSecret {
	var merged []ownedSecret
	for _, s := range found {
		same := slices.IndexFunc(merged, func(other ownedSecret) bool { return other.uid == s.uid && other.key == s.key })
		if same < 0 {
			merged = append(merged, s)
			continue
		}
		merged[same].both = true
	}
	return merged
}

// stored is the credential Secret of one registration as last read; nil when there is none.
type stored struct {
	secret *corev1.Secret
	renew  bool
}

// load reads the credential Secret of a registration. Whether the Secret is of another owner is decided by the API
// server: the watch that reports its deletion may be ahead of the cache, and the cache then reports no further event.
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
	if err := r.checkOwner(ctx, &secret, f, on, reg); err != nil {
		if foreign := (foreignError{}); !live && errors.As(err, &foreign) {
			return r.load(ctx, f, on, reg, true)
		}
		return stored{}, err
	}
	return stored{secret: secret.DeepCopy(), renew: fromOtherHub(&secret, r.Server)}, nil
}

// foreignError is returned for a Secret with the name of ours that has another owner.
type foreignError struct {
	message string
	// until are the targets to watch: when one of them changes, the Secret may become ours.
	until []target
}

// Error names the owner of the Secret and the remedy.
func (e foreignError) Error() string { return e.message }

// checkOwner returns a foreignError for a Secret of another add-on or agent. Secrets of an agent whose namespace is
// gone are ours.
func (r *Reconciler) checkOwner(
	ctx context.Context, secret *corev1.Secret, f facts, on side, reg registration,
) error {
	owner := ownerOf(secret, f, on, r.Server.Name())
	if secret.Labels[names.LabelCredential] == "" && !isCredentialOf(secret, f, reg) {
		owner.foreign = fmt.Sprintf("secret %s/%s exists and is not a credential of the add-on: delete it, or give the "+
			"add-on another namespace", secret.Namespace, secret.Name)
	}
	if owner.foreign == "" {
		return nil
	}
	err := foreignError{message: owner.foreign, until: []target{
		{side: on, kind: kindSecret, namespace: secret.Namespace, name: secret.Name},
	}}
	if owner.unlessGone == "" {
		return err
	}
	switch state, readErr := readPresence(ctx, r.sides[on].GetAPIReader(), owner.unlessGone); {
	case state == presenceMissing:
		return nil
	case readErr != nil:
		return fmt.Errorf("finding out whether the agent that secret %s/%s belongs to is still there: %w",
			secret.Namespace, secret.Name, readErr)
	}
	err.until = append(err.until, target{side: on, kind: kindNamespace, name: owner.unlessGone})
	return err
}

// fromOtherHub reports whether a credential is from another hub, by the annotation of the Secret or, in Secrets of
// other agents, by the kubeconfig. With neither of them it is not.
func fromOtherHub(secret *corev1.Secret, server csr.HubServer) bool {
	if name, ok := secret.Annotations[names.AnnotationHub]; ok {
		return name != server.Name()
	}
	have, err := csr.ParseHubServer(secret.Data[csr.KeyKubeconfig])
	return err == nil && !have.SameHub(server)
}

// leaseOf returns the observed lease; nil when it is absent.
func leaseOf(s observation) *coordinationv1.Lease {
	l, _ := s.object.(*coordinationv1.Lease)
	return l
}
