package agent

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// bootstrap is a bootstrap kubeconfig as it was read at the start of a phase.
type bootstrap struct {
	// kubeconfig is self-contained; nil when there is none.
	kubeconfig []byte
	// server is the hub that it leads to; without a bootstrap kubeconfig, the one of the stored credential.
	server csr.HubServer
}

// bootstrapSource says where the bootstrap kubeconfig comes from: a file, or a Secret in the agent's namespace.
type bootstrapSource struct {
	file   string
	secret types.NamespacedName
}

// String names the source in errors.
func (s bootstrapSource) String() string {
	if s.file != "" {
		return s.file
	}
	return "in Secret " + s.secret.String()
}

// read returns the bootstrap kubeconfig with all files that it names inlined; nil when its Secret does not exist. r
// must not read from a cache.
func (s bootstrapSource) read(ctx context.Context, r client.Reader) ([]byte, error) {
	if s.file == "" {
		return s.readSecret(ctx, r)
	}
	config, err := clientcmd.LoadFromFile(s.file)
	if err != nil {
		return nil, fmt.Errorf("bootstrap kubeconfig %s: %w", s, err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("bootstrap kubeconfig %s: finding the files that it names: %w", s, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("bootstrap kubeconfig %s: reading the files that it names: %w", s, err)
	}
	return clientcmd.Write(*config)
}

func (s bootstrapSource) readSecret(ctx context.Context, r client.Reader) ([]byte, error) {
	var secret corev1.Secret
	switch err := r.Get(ctx, s.secret, &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the bootstrap kubeconfig %s: %w", s, err)
	}
	return secret.Data[csr.KeyKubeconfig], nil
}

// parse reads how the hub is reached; the error says what is wrong with the bootstrap kubeconfig and where it is.
func (s bootstrapSource) parse(kubeconfig []byte) (bootstrap, error) {
	server, err := join.ParseBootstrap(kubeconfig, s.String())
	if err != nil {
		return bootstrap{}, err
	}
	if _, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		return bootstrap{}, fmt.Errorf("bootstrap kubeconfig %s: %w", s, err)
	}
	return bootstrap{kubeconfig: kubeconfig, server: server}, nil
}

// watch ends the phase when the Secret of the bootstrap kubeconfig says something else than what the phase began with.
// A file is read again at the next phase only.
func (s bootstrapSource) watch(mgr ctrl.Manager, began []byte, end context.CancelCauseFunc) error {
	if s.file != "" {
		return nil
	}
	look := func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		now, err := s.readSecret(ctx, mgr.GetClient())
		if err != nil {
			return ctrl.Result{}, err
		}
		if now != nil && !bytes.Equal(now, began) {
			end(phaseOverError("the bootstrap kubeconfig " + s.String() + " changed"))
		}
		return ctrl.Result{}, nil
	}
	own := predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == s.secret })
	return ctrl.NewControllerManagedBy(mgr).Named("agent.bootstrap").WithOptions(kit.Options(1)).
		Watches(&corev1.Secret{}, &handler.EnqueueRequestForObject{}).WithEventFilter(own).
		Complete(reconcile.Func(look))
}
