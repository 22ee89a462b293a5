package suite

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// Plane is a control plane with clients of its administrator.
type Plane struct {
	*sandbox.ControlPlane
	// Client reads and writes any object of Scheme as an administrator.
	Client client.WithWatch
	// AddOns reads and writes add-ons as an administrator.
	AddOns addonapi.Client
}

// Scheme returns a scheme with all kinds that the suites read and write.
func Scheme() *runtime.Scheme {
	scheme := fleet.Scheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// Start starts a control plane and applies documents, such as those of package manifests, in order. The control plane
// ends with the test or the package.
func Start(t T, options sandbox.Options, docs ...[][]byte) *Plane {
	t.Helper()
	started, err := sandbox.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(started.Stop)
	require.NoError(t, started.Apply(t.Context(), slices.Concat(docs...)...))
	admin, err := client.NewWithWatch(started.Admin(), client.Options{Scheme: Scheme()})
	require.NoError(t, err)
	return &Plane{ControlPlane: started, Client: admin, AddOns: addonapi.Client{Client: admin}}
}

// As returns a client of a user.
func (p *Plane) As(t T, user string, groups ...string) client.WithWatch {
	t.Helper()
	config, err := p.User(user, groups...)
	require.NoError(t, err)
	return NewClient(t, config)
}

// Account returns a client of a ServiceAccount.
func (p *Plane) Account(t T, namespace, name string) client.WithWatch {
	t.Helper()
	return NewClient(t, p.AccountConfig(t, namespace, name))
}

// AccountConfig returns the configuration of a client of a ServiceAccount.
func (p *Plane) AccountConfig(t T, namespace, name string) *rest.Config {
	t.Helper()
	config, err := p.ServiceAccount(t.Context(), namespace, name)
	require.NoError(t, err)
	return config
}

// NewClient returns a client of any object of Scheme.
func NewClient(t T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	require.NoError(t, err)
	return c
}

// Namespace creates a namespace of its own for a test and returns its name, which begins with the prefix. It can be the
// name of a cluster, too.
func (p *Plane) Namespace(t T, prefix string) string {
	t.Helper()
	name := UniqueName(prefix)
	require.NoError(t, p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

// UniqueName returns a name that nobody used before: of a cluster, a namespace, or whatever a test must own. Most of
// the prefix, which may be the name of a test, is kept.
func UniqueName(prefix string) string {
	const longest = 45
	prefix = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(prefix))
	return strings.Trim(prefix[:min(len(prefix), longest)], "-") + "-" + utilrand.String(5)
}
