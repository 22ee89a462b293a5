package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// readClocks sets the times of a pass.
func (r *Reconciler) readClocks(f *facts) {
	f.now = r.Clock.Now()
	f.ahead, f.hubKnown = r.Ahead()
}

func (r *Reconciler) observe(ctx context.Context, addon string) (facts, error) {
	f := facts{
		name: addon, cluster: r.Cluster, split: len(r.sides) > 1, grace: r.LeaseGrace,
		agent: r.Namespace + "/" + r.SecretName, expirationSeconds: r.ExpirationSeconds, driver: r.Driver,
		tokenSeconds:     r.TokenExpirationSeconds,
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

// load reads the credential Secret of the registration. Whether the Secret is of another owner is decided by the API
// server: the watch that reports its deletion may be ahead of the cache, and the cache then reports no further event.
func (s *serving) load(ctx context.Context, live bool) (stored, error) {
	reader := client.Reader(s.sides[s.place.side].GetClient())
	if live {
		reader = s.sides[s.place.side].GetAPIReader()
	}
	var secret corev1.Secret
	switch err := reader.Get(ctx, s.reg.secret, &secret); {
	case apierrors.IsNotFound(err):
		return stored{}, nil
	case err != nil:
		return stored{}, fmt.Errorf("reading secret %s: %w", s.reg.secret, err)
	}
	if err := s.checkOwner(ctx, &secret); err != nil {
		if foreign := (foreignError{}); !live && errors.As(err, &foreign) {
			return s.load(ctx, true)
		}
		return stored{}, err
	}
	return stored{secret: secret.DeepCopy(), renew: fromOtherHub(&secret, s.Server)}, nil
}

// checkOwner returns a foreignError for a Secret of another add-on or agent. Secrets of an agent whose namespace is
// gone are ours.
func (s *serving) checkOwner(ctx context.Context, secret *corev1.Secret) error {
	owner := ownerOf(secret, s.facts, s.place.side, s.Server.Name())
	if secret.Labels[names.LabelCredential] == "" && !isCredentialOf(secret, s.facts, s.reg) {
		owner.foreign = fmt.Sprintf("secret %s/%s exists and is not a credential of the add-on: delete it, or give the "+
			"add-on another namespace", secret.Namespace, secret.Name)
	}
	if owner.foreign == "" {
		return nil
	}
	err := foreignError{message: owner.foreign, until: []target{
		{side: s.place.side, kind: kindSecret, namespace: secret.Namespace, name: secret.Name},
	}}
	if owner.unlessGone == "" {
		return err
	}
	switch state, readErr := readPresence(ctx, s.sides[s.place.side].GetAPIReader(), owner.unlessGone); {
	case state == presenceMissing:
		return nil
	case readErr != nil:
		return fmt.Errorf("finding out whether the agent that secret %s/%s belongs to is still there: %w",
			secret.Namespace, secret.Name, readErr)
	}
	err.until = append(err.until, target{side: s.place.side, kind: kindNamespace, name: owner.unlessGone})
	return err
}

// fromOtherHub reports whether a credential is from another hub, by the annotation of the Secret or, in Secrets of
// other agents, by the kubeconfig. With neither of them it is not.
func fromOtherHub(secret *corev1.Secret, server issue.HubServer) bool {
	if name, ok := secret.Annotations[names.AnnotationHub]; ok {
		return name != server.Name()
	}
	have, err := issue.ParseHubServer(secret.Data[csr.KeyKubeconfig])
	return err == nil && !have.SameHub(server)
}

// isUnknown reports whether the hub reports the cluster as Unknown.
func isUnknown(o client.Object) bool {
	c, ok := o.(*clusterv1.ManagedCluster)
	if !ok {
		return false
	}
	available := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return available != nil && available.Status == "Unknown"
}
