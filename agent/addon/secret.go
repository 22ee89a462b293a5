package addon

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// tokenOf reads the token of a Secret; it is empty for a Secret that is nil.
func tokenOf(secret *corev1.Secret) credential {
	if secret == nil {
		return credential{}
	}
	// A Secret has one such annotation, whatever it holds.
	return credential{token: secret.Data[token.KeyToken], issuedAt: issue.PairOf(secret).IssuedAt}
}

// putToken writes the token into a Secret. A certificate that it replaces stays until it expires, by the time at the
// hub: agents that are running read it from its files until they are restarted with the new kubeconfig.
func (c credential) putToken(secret *corev1.Secret, now time.Time) {
	replaced := issue.PairOf(secret)
	replaced.IssuedAt = c.issuedAt // a Secret has one such annotation
	replaced.Put(secret)
	if len(replaced.Key) == 0 || !now.Before(issue.ExpiresAt(replaced)) {
		delete(secret.Data, csr.KeyCertificate)
		delete(secret.Data, csr.KeyPrivateKey)
	}
	secret.Data[token.KeyToken] = c.token
}

// untilToken returns the outcome until a token is to be replaced, or before that a certificate to be removed that
// it replaced in the Secret.
func (s *serving) untilToken(rotateAt time.Time, secret *corev1.Secret) reconcile.Outcome {
	end := issue.ExpiresAt(issue.PairOf(secret))
	if at := s.facts.toLocal(end); s.facts.hubNow().Before(end) && at.Before(rotateAt) {
		return reconcile.DoneUntil(at)
	}
	return reconcile.DoneUntil(rotateAt)
}

// store writes the credential Secret if it differs. A Secret of that name without our labels becomes ours if another
// agent stored the credential of this add-on in it.
func (s *serving) store(ctx context.Context, seen *corev1.Secret, fresh credential) error {
	c := s.sides[s.place.side].GetClient()
	if seen == nil {
		secret, err := s.fill(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.reg.secret.Namespace, Name: s.reg.secret.Name},
		}, fresh)
		if err != nil {
			return err
		}
		err = c.Create(ctx, secret)
		if !apierrors.IsAlreadyExists(err) {
			return wrapStore(err, s.reg)
		}
		return s.adopt(ctx, fresh, err)
	}
	secret, err := s.fill(seen, fresh)
	if err != nil || equality.Semantic.DeepEqual(secret, seen) {
		return err
	}
	return wrapStore(c.Update(ctx, secret), s.reg)
}

// adopt takes over a Secret with the name of ours that our cache does not hold, because it has no labels of ours or
// those of a former name of the cluster. If it has our labels, the cache is only late.
func (s *serving) adopt(ctx context.Context, fresh credential, exists error) error {
	have, err := s.load(ctx, true)
	if err != nil {
		return err
	}
	if have.secret == nil || isShown(have.secret, s.facts.cluster) {
		return wrapStore(exists, s.reg)
	}
	return s.store(ctx, have.secret, fresh)
}

// isShown reports whether the cache of the agent of a cluster holds a Secret.
func isShown(secret *corev1.Secret, cluster string) bool {
	return secret.Labels[names.LabelCredential] != "" && secret.Labels[names.LabelClusterName] == cluster
}

func wrapStore(err error, reg registration) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("storing the credential in secret %s: %w", reg.secret, err)
}

// fill returns a copy of a Secret with the credential, the kubeconfig, labels and annotations. Unknown keys stay. The
// update that stores a certificate also removes the token that it replaces.
func (s *serving) fill(seen *corev1.Secret, fresh credential) (*corev1.Secret, error) {
	secret := seen.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[csr.KeyClusterName] = []byte(s.facts.cluster)
	describes, write := s.Server.Describes, s.Server.Kubeconfig
	if s.reg.account != nil {
		describes, write = s.Server.DescribesToken, s.Server.TokenKubeconfig
		fresh.putToken(secret, s.facts.hubNow())
	} else {
		fresh.pair.Put(secret)
		if s.reg.kubeconfig {
			delete(secret.Data, token.KeyToken)
		}
	}
	if s.reg.kubeconfig && !describes(secret.Data[csr.KeyKubeconfig]) {
		kubeconfig, err := write()
		if err != nil {
			return nil, err
		}
		secret.Data[csr.KeyKubeconfig] = kubeconfig
	}
	if !isShown(seen, s.facts.cluster) || seen.Annotations[names.AnnotationHub] != s.Server.Name() ||
		seen.Annotations[names.AnnotationAgent] == "" {
		// Two agents of one cluster at one hub share the Secret; the mark of the first one stays.
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationAgent, markOf(s.facts, s.place.side))
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelCredential, names.CredentialAddon)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelClusterName, s.facts.cluster)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelAddonName, s.facts.name)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationHub, s.Server.Name())
	return secret, nil
}
