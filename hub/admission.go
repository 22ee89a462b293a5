package hub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/spokelet/spokelet/hub/webhook"
)

// firstAnnouncement and lastAnnouncement bound the delay between two attempts.
const firstAnnouncement, lastAnnouncement = 50 * time.Millisecond, time.Minute

// announcer applies the webhook configuration for ManifestWorks as soon as the webhook answers: any earlier, and no
// work could be created.
type announcer struct {
	config Config
	client client.Client
	// at returns the address of the conversion; nil while there is no certificate.
	at      func() *apiextensionsv1.WebhookClientConfig
	started healthz.Checker
}

// NeedLeaderElection returns false: all replicas apply the same.
func (*announcer) NeedLeaderElection() bool { return false }

// Start applies the configuration and then returns; it also returns when ctx ends.
func (a *announcer) Start(ctx context.Context) error {
	const doing = "applying the webhook configuration of ManifestWorks; this is tried again"
	done := untilDone(ctx, doing, func(ctx context.Context) (bool, error) {
		if serves := a.started(nil) == nil; !serves {
			return false, nil // The certificate is missing, which the log says already.
		}
		err := a.announce(ctx)
		return err == nil, err
	})
	if done {
		ctrl.LoggerFrom(ctx).WithName("hub.admission").Info("applied the webhook configuration of ManifestWorks",
			"enabled", a.config.WorkAdmission)
	}
	return nil
}

// untilDone calls try with growing pauses until it is done, and logs each new error once. It reports false when ctx
// ends before.
func untilDone(ctx context.Context, doing string, try func(context.Context) (bool, error)) bool {
	logger, logged := ctrl.LoggerFrom(ctx).WithName("hub.admission"), ""
	backoff := wait.Backoff{Duration: firstAnnouncement, Factor: 2, Steps: math.MaxInt, Cap: lastAnnouncement}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		done, err := try(ctx)
		if err != nil && err.Error() != logged {
			logged = err.Error()
			logger.Error(err, doing)
		}
		return done, nil
	}) == nil
}

// announce applies the webhook configuration, or deletes it if the check is off: the API server would call a webhook
// that does not answer.
func (a *announcer) announce(ctx context.Context) error {
	conv := a.at()
	if conv == nil {
		return nil
	}
	serving, err := a.serving(ctx, conv)
	if err != nil {
		return err
	}
	works := webhook.ValidatingWorks(serving)
	if !a.config.WorkAdmission {
		if err := a.client.Delete(ctx, works); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the webhook configuration %s: %w", works.Name, err)
		}
		return nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(works)
	if err != nil {
		return fmt.Errorf("encoding a webhook configuration: %w", err)
	}
	u := &unstructured.Unstructured{Object: object}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager))
	switch {
	case apierrors.IsConflict(err):
		ctrl.LoggerFrom(ctx).Info("somebody else keeps this webhook configuration, so it is left as it is",
			"kind", u.GetKind(), "difference", err.Error())
	case err != nil:
		return fmt.Errorf("applying the %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// remover deletes the webhook configurations of earlier versions that no process serves any more. It runs even without
// a webhook, because the API server refuses every write of ManagedClusters until they are gone.
type remover struct{ client client.Client }

// removeObsolete adds the remover to the manager.
func removeObsolete(mgr ctrl.Manager) error {
	c, err := uncached(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	if err := mgr.Add(&remover{client: c}); err != nil {
		return fmt.Errorf("registering the removal of obsolete webhook configurations: %w", err)
	}
	return nil
}

// NeedLeaderElection returns false: every replica may delete them.
func (*remover) NeedLeaderElection() bool { return false }

// Start deletes them and then returns; it also returns when ctx ends.
func (r *remover) Start(ctx context.Context) error {
	const doing = "deleting the webhook configurations of earlier versions; this is tried again"
	untilDone(ctx, doing, func(ctx context.Context) (bool, error) {
		err := r.remove(ctx)
		return err == nil, err
	})
	return nil
}

func (r *remover) remove(ctx context.Context) error {
	var failed []error
	for _, configuration := range webhook.Obsolete() {
		if err := r.client.Delete(ctx, configuration); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("deleting the %T %s: %w", configuration, configuration.GetName(), err))
		}
	}
	return errors.Join(failed...)
}

// serving returns the address of the webhook, and the exempt user. The configurations are owned by the namespace of the
// hub manager and are deleted with it, because a webhook that does not answer would block works.
func (a *announcer) serving(ctx context.Context, conv *apiextensionsv1.WebhookClientConfig) (webhook.Serving, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := a.client.Create(ctx, review); err != nil {
		return webhook.Serving{}, fmt.Errorf("asking the API server who we are: %w", err)
	}
	s := webhook.Serving{User: review.Status.UserInfo.Username}
	var namespace corev1.Namespace
	err := a.client.Get(ctx, types.NamespacedName{Name: a.config.Namespace}, &namespace)
	switch {
	case err == nil:
		s.Owners = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID,
		}}
	case !apierrors.IsNotFound(err):
		return webhook.Serving{}, fmt.Errorf("reading namespace %s: %w", a.config.Namespace, err)
	}
	s.At = func(path string) admissionregistrationv1.WebhookClientConfig { return admissionAt(conv, path) }
	return s, nil
}

// admissionAt returns the client configuration for a path, given that of the conversion.
func admissionAt(conv *apiextensionsv1.WebhookClientConfig, path string) admissionregistrationv1.WebhookClientConfig {
	at := admissionregistrationv1.WebhookClientConfig{CABundle: conv.CABundle}
	if conv.Service != nil {
		at.Service = &admissionregistrationv1.ServiceReference{
			Namespace: conv.Service.Namespace, Name: conv.Service.Name, Path: &path,
		}
		return at
	}
	if conv.URL != nil {
		address := *conv.URL
		if parsed, err := url.Parse(address); err == nil {
			parsed.Path, parsed.RawPath = path, ""
			address = parsed.String()
		}
		at.URL = &address
	}
	return at
}

// uncached returns a client without a cache for admission configuration; a nil HTTP client means a new one.
func uncached(cfg *rest.Config, httpClient *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("building the client for policies and webhook configurations: %w", err)
	}
	return c, nil
}
