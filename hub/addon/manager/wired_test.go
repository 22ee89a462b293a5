package manager

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/hashes"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
)

// recording is a manager that remembers the reconcilers of the controllers that are added to it.
type recording struct {
	ctrl.Manager
	added []any
}

func (m *recording) Add(r manager.Runnable) error {
	if does := reflect.Indirect(reflect.ValueOf(r)); does.Kind() == reflect.Struct {
		if field := does.FieldByName("Do"); field.IsValid() {
			m.added = append(m.added, field.Interface())
		}
	}
	return m.Manager.Add(r)
}

// All that decide by configurations ask the API server before they follow another content of one: a cache that is
// behind has an earlier one.
//
// Shows: hub/author-hashes-behind
func TestTheReconcilersOfAProgramConfirmConfigurations(t *testing.T) {
	scheme, err := hubprocess.NewScheme()
	require.NoError(t, err)
	inner, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &informertest.FakeInformers{Scheme: scheme}, nil
		},
	})
	require.NoError(t, err)
	mgr, agents := &recording{Manager: inner}, []addon.Agent{full(t)}
	own, err := newAddOns(agents)
	require.NoError(t, err)
	var c Config
	c.complete(agents)
	require.NoError(t, setup(t.Context(), &hubprocess.Manager{Manager: mgr, Wire: addonapi.WireAlpha}, c, own))
	live := 0
	of := func(configurer addon.Configurer) {
		follower, is := configurer.(*configure.Follower)
		require.True(t, is)
		assert.Equal(t, mgr.GetAPIReader(), follower.Store.Live)
		live++
	}
	for _, one := range mgr.added {
		switch r := one.(type) {
		case *deploy.Reconciler:
			of(r.Configurer)
		case *approval.Reconciler:
			of(r.Configurer)
		case *hashes.Reconciler:
			assert.Equal(t, mgr.GetAPIReader(), r.Store.Live)
			live++
		}
	}
	assert.Equal(t, 3, live)
}
