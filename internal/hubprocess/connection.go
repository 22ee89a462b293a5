package hubprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// Connection is how a program reaches the API server of its hub.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig of the hub; empty means the pod's own service account.
	Kubeconfig string
	// UserAgent is the user agent of requests, and the field manager of writes.
	UserAgent string
	// QPS and Burst limit requests; QPS zero leaves that to API Priority and Fairness.
	QPS   float32
	Burst int
	// Wrap, unless nil, is put around every transport.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Config returns the client configuration.
func (c Connection) Config() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the hub: %w", err)
	}
	cfg.UserAgent = c.UserAgent
	cfg.QPS, cfg.Burst = c.QPS, c.Burst
	if c.QPS == 0 {
		cfg.QPS = -1
	}
	cfg.Wrap(roundtrip.Chain(roundtrip.Bound(roundtrip.Silence), c.Wrap))
	return cfg, nil
}

// newVersions detects that the hub no longer serves the API version of add-ons that this process uses. All reconcilers
// are built for one version, so the process exits, and restarts with the other. program is the process in messages,
// such as "the hub manager".
func newVersions(
	ctx context.Context, cfg *rest.Config, wire addonapi.Wire, program string,
) *addonapi.Versions {
	v := addonapi.NewVersions()
	v.Wire = wire
	v.Detect = func() (addonapi.Wire, error) { return addonapi.DetectAt(cfg, nil) }
	v.Changed = func(now addonapi.Wire) error {
		return fmt.Errorf("the hub serves add-ons in %s and no longer in %s: %s has to be started again, "+
			"and then uses %s", now, wire, program, now)
	}
	v.Missing = func(why error) {
		if why == nil {
			ctrl.LoggerFrom(ctx).Info("the hub serves add-ons again", "version", wire)
			return
		}
		ctrl.LoggerFrom(ctx).Error(why, "the add-ons of the hub cannot be seen, looking again")
	}
	return v
}

// NewScheme returns a scheme with all kinds that the reconcilers of a hub read or write.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var failed error
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, clusterv1.Install,
		clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install, policies.Install,
	} {
		failed = errors.Join(failed, add(scheme))
	}
	if failed != nil {
		return nil, fmt.Errorf("building the scheme: %w", failed)
	}
	return scheme, nil
}

// newMapper returns a function that makes the RESTMapper of a manager.
func newMapper(scheme *runtime.Scheme) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
		mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
		if err != nil {
			return nil, fmt.Errorf("building the mapper from kinds to resources: %w", err)
		}
		return &steadyMapper{RESTMapper: mapper, scheme: scheme}, nil
	}
}

// steadyMapper is a RESTMapper that remembers the resources of the kinds of its scheme: a manager ends when the hub no
// longer serves one of them. A cache of one namespace asks for the scope of the kind with every read, and finding it
// again took a twelfth of all that a start allocates.
type steadyMapper struct {
	meta.RESTMapper
	scheme *runtime.Scheme
	// known has a *meta.RESTMapping for each schema.GroupVersionKind that was found.
	known sync.Map
}

// RESTMapping implements meta.RESTMapper.
func (m *steadyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || !m.scheme.Recognizes(kind.WithVersion(versions[0])) {
		return m.RESTMapper.RESTMapping(kind, versions...) // it is the answer of the library
	}
	known, found := m.known.Load(kind.WithVersion(versions[0]))
	if mapping, isMapping := known.(*meta.RESTMapping); found && isMapping {
		return mapping, nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err // callers ask whether there is no match
	}
	m.known.Store(kind.WithVersion(versions[0]), mapping)
	return mapping, nil
}
