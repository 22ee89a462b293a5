package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keyTrusted, keyAuthority, keyServing and keyServingKey are the keys of the Secret, all PEM. tls.crt, tls.key and
	// ca.crt are named as cert-manager does.
	keyTrusted, keyAuthority  = "ca.crt", "ca.key"
	keyServing, keyServingKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	// fieldManager is the field manager of the Secret.
	fieldManager = "spokelet-hub"
)

// Store keeps an authority and a serving certificate in a Secret.
type Store struct {
	// Client reads and writes the Secret, without a cache.
	Client client.Client
	// Key is the namespace and the name of the Secret.
	Key types.NamespacedName
	// Names are the DNS names and IP addresses that the certificate serves.
	Names []string
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Random is the source of randomness for keys.
	Random io.Reader
}

// Ensure creates what is missing or due in the Secret. It returns the content, and when something is due next.
func (s *Store) Ensure(ctx context.Context) (tls.Certificate, []byte, time.Time, error) {
	var secret corev1.Secret
	var next time.Time
	// Other replicas may do the same at the same time: the first write wins.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		secret = corev1.Secret{}
		if err = s.get(ctx, &secret); err == nil {
			next, err = s.complete(ctx, &secret)
		}
		return err
	})
	if err != nil {
		return tls.Certificate{}, nil, time.Time{}, err
	}
	serving, err := tls.X509KeyPair(secret.Data[keyServing], secret.Data[keyServingKey])
	if err != nil {
		return tls.Certificate{}, nil, time.Time{}, fmt.Errorf("reading the certificate in Secret %s: %w", s.Key, err)
	}
	return serving, secret.Data[keyTrusted], next, nil
}

// get reads the Secret, and creates an empty one if it does not exist. An apply needs the right "create" for this name
// only, and is the same in all replicas.
func (s *Store) get(ctx context.Context, secret *corev1.Secret) error {
	err := s.Client.Get(ctx, s.Key, secret)
	if !apierrors.IsNotFound(err) {
		return wrap("reading", s.Key, err)
	}
	empty := corev1apply.Secret(s.Key.Name, s.Key.Namespace).WithType(corev1.SecretTypeOpaque)
	if err := s.Client.Apply(ctx, empty, client.FieldOwner(fieldManager)); err != nil {
		return wrap("creating", s.Key, err)
	}
	return wrap("reading", s.Key, s.Client.Get(ctx, s.Key, secret))
}

// complete creates what is missing or due.
func (s *Store) complete(ctx context.Context, secret *corev1.Secret) (time.Time, error) {
	now := s.Clock.Now()
	kept := read(secret.Data)
	plan := Decide(kept, s.Names, now)
	if !plan.Authority && !plan.Serving {
		return plan.Next, nil
	}
	before := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if err := s.issue(secret.Data, kept, plan, now); err != nil {
		return time.Time{}, err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Patch(ctx, secret, patch, client.FieldOwner(fieldManager)); err != nil {
		return time.Time{}, wrap("writing", s.Key, err)
	}
	return plan.Next, nil
}

// issue carries out a plan.
func (s *Store) issue(data map[string][]byte, kept Kept, plan Plan, now time.Time) error {
	var signer pair
	if len(kept.Trusted) > 0 {
		signer = pair{certificate: kept.Trusted[0], key: kept.AuthorityKey}
	}
	if plan.Authority {
		authority, err := newAuthority(now, s.Random)
		if err != nil {
			return err
		}
		trusted := []*x509.Certificate{authority.certificate}
		if plan.KeepTrusted {
			for _, former := range kept.Trusted {
				if now.Before(former.NotAfter) {
					trusted = append(trusted, former)
				}
			}
		} else {
			signer = authority
		}
		if data[keyTrusted], err = cert.EncodeCertificates(trusted...); err != nil {
			return fmt.Errorf("encoding the authorities: %w", err)
		}
		if data[keyAuthority], err = keyutil.MarshalPrivateKeyToPEM(authority.key); err != nil {
			return fmt.Errorf("encoding the key of the authority: %w", err)
		}
	}
	if !plan.Serving {
		return nil
	}
	serving, err := newServing(signer, s.Names, now, s.Random)
	if err != nil {
		return err
	}
	if data[keyServing], err = cert.EncodeCertificates(serving.certificate); err != nil {
		return fmt.Errorf("encoding the serving certificate: %w", err)
	}
	if data[keyServingKey], err = keyutil.MarshalPrivateKeyToPEM(serving.key); err != nil {
		return fmt.Errorf("encoding the key of the serving certificate: %w", err)
	}
	return nil
}

// read returns the usable content of a Secret; anything else counts as missing.
func read(data map[string][]byte) Kept {
	var k Kept
	trusted, err := cert.ParseCertsPEM(data[keyTrusted])
	if err != nil {
		return k
	}
	k.Trusted = trusted
	if parsed, err := keyutil.ParsePrivateKeyPEM(data[keyAuthority]); err == nil {
		if key, ok := parsed.(*ecdsa.PrivateKey); ok && key.PublicKey.Equal(trusted[0].PublicKey) {
			k.AuthorityKey = key
		}
	}
	if serving, err := tls.X509KeyPair(data[keyServing], data[keyServingKey]); err == nil {
		k.Serving = serving.Leaf
	}
	return k
}

// wrap wraps an error; nil stays nil.
func wrap(doing string, key types.NamespacedName, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Secret %s with the certificate of the webhook: %w", doing, key, err)
}
