package addon

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
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

// putToken writes the token into a Secret and removes a certificate that it replaces.
func (c credential) putToken(secret *corev1.Secret) {
	issue.Pair{IssuedAt: c.issuedAt}.Put(secret)
	delete(secret.Data, csr.KeyCertificate)
	delete(secret.Data, csr.KeyPrivateKey)
	secret.Data[token.KeyToken] = c.token
}

// store writes the credential Secret if it differs. A Secret of that name without our labels becomes ours if another
// agent stored the credential of this add-on in it.
func (r *Reconciler) store(
	ctx context.Context, f facts, p place, reg registration, seen *corev1.Secret, fresh credential,
) error {
	c := r.sides[p.side].GetClient()
	if seen == nil {
		secret, err := r.fill(f, p.side, reg, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: reg.secret.Namespace, Name: reg.secret.Name},
		}, fresh)
		if err != nil {
			return err
		}
		err = c.Create(ctx, secret)
		if !apierrors.IsAlreadyExists(err) {
			return wrapStore(err, reg)
		}
		return r.adopt(ctx, f, p, reg, fresh, err)
	}
	secret, err := r.fill(f, p.side, reg, seen, fresh)
	if err != nil || equality.Semantic.DeepEqual(secret, seen) {
		return err
	}
	return wrapStore(c.Update(ctx, secret), reg)
}

// adopt takes over a Secret with the name of ours that our cache does not hold, because it has no labels of ours or
// those of a former name of the cluster. If it has our labels, the cache is only late.
func (r *Reconciler) adopt(
	ctx context.Context, f facts, p place, reg registration, fresh credential, exists error,
) error {
	have, err := r.load(ctx, f, p.side, reg, true)
	if err != nil {
		return err
	}
	if have.secret == nil || isShown(have.secret, f.cluster) {
		return wrapStore(exists, reg)
	}
	return r.store(ctx, f, p, reg, have.secret, fresh)
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
// update that stores the new credential also removes the old driver's keys.
func (r *Reconciler) fill(
	f facts, on side, reg registration, seen *corev1.Secret, fresh credential,
) (*corev1.Secret, error) {
	secret := seen.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[csr.KeyClusterName] = []byte(f.cluster)
	describes, write := r.Server.Describes, r.Server.Kubeconfig
	if reg.account != nil {
		describes, write = r.Server.DescribesToken, r.Server.TokenKubeconfig
		fresh.putToken(secret)
	} else {
		fresh.pair.Put(secret)
		if reg.kubeconfig {
			delete(secret.Data, token.KeyToken)
		}
	}
	if reg.kubeconfig && !describes(secret.Data[csr.KeyKubeconfig]) {
		kubeconfig, err := write()
		if err != nil {
			return nil, err
		}
		secret.Data[csr.KeyKubeconfig] = kubeconfig
	}
	if !isShown(seen, f.cluster) || seen.Annotations[names.AnnotationHub] != r.Server.Name() ||
		seen.Annotations[names.AnnotationAgent] == "" {
		// Two agents of one cluster at one hub share the Secret; the mark of the first one stays.
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationAgent, markOf(f, on))
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelCredential, names.CredentialAddon)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelClusterName, f.cluster)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelAddonName, f.name)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationHub, r.Server.Name())
	return secret, nil
}
