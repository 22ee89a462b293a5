package hub

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// recording is a manager that remembers what is added to it, of a hub that serves all kinds.
type recording struct {
	ctrl.Manager
	added []manager.Runnable
}

func (m *recording) GetAPIReader() client.Reader {
	return fake.NewClientBuilder().WithScheme(m.GetScheme()).Build()
}

func (m *recording) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return m.Manager.Add(r)
}

// wired returns what setup adds to a manager, with the reconcilers in place of their controllers.
func wired(t *testing.T, c Config) []any {
	t.Helper()
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
	mgr := &recording{Manager: inner}
	require.NoError(t, setup(t.Context(), &hubprocess.Manager{Manager: mgr, Wire: addonapi.WireAlpha}, c, nil))
	all := make([]any, len(mgr.added))
	for i, one := range mgr.added {
		all[i] = one
		if does := reflect.Indirect(reflect.ValueOf(one)); does.Kind() == reflect.Struct {
			if field := does.FieldByName("Do"); field.IsValid() {
				all[i] = field.Interface()
			}
		}
	}
	return all
}

// the returns the one of a type.
func the[T any](t *testing.T, all []any) T {
	t.Helper()
	var found []T
	for _, one := range all {
		if is, ok := one.(T); ok {
			found = append(found, is)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// Shows: hub/reading-stores-nothing, hub/watched-configs
func TestHowTheReconcilersOfConfigurationsAreWired(t *testing.T) {
	c := DefaultConfig()
	c.WatchedConfigs = 6000
	all := wired(t, c)
	configurer, is := the[*deploy.Reconciler](t, all).Configurer.(*configure.Configurer)
	require.True(t, is)
	assert.Equal(t, 6000, configurer.Store.Limit, "an add-on gets its share of what the administrator allows")
	watcher := reflect.ValueOf(the[*objectwatch.Watcher](t, all)).Elem()
	assert.EqualValues(t, 6000, watcher.FieldByName("limit").Int(), "and the watches are as many")
	assert.IsType(t, configurer.Reading(), the[*approval.Reconciler](t, all).Configurer, "approvals store nothing")
}

// reconcilers returns the reconcilers that setup starts, by the path of their package below hub.
func reconcilers(t *testing.T) map[string]reflect.Value {
	t.Helper()
	c := DefaultConfig()
	c.Placement, c.WorkTTL, c.ClusterLabels = true, true, map[string]string{"team": "edge"}
	found := map[string]reflect.Value{}
	for _, one := range wired(t, c) {
		value := reflect.Indirect(reflect.ValueOf(one))
		if path, below := strings.CutPrefix(value.Type().PkgPath(), reflect.TypeFor[Config]().PkgPath()+"/"); below {
			found[path] = value
		}
	}
	return found
}

func TestEachPackageWithAReconcilerIsStarted(t *testing.T) {
	started, ofAuthors := reconcilers(t), map[string]bool{"hashes": true}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		of := filepath.ToSlash(filepath.Dir(path))
		if bytes.Contains(content, []byte("\nfunc (r *Reconciler) SetupWithManager(")) && !ofAuthors[of] {
			assert.True(t, started[of].IsValid(), "setup in reconcilers.go does not start the reconciler of hub/%s", of)
		}
		return err
	}))
}

// What a field means when it is nil is for tests, and for parts that are turned off.
func TestEachFieldOfAReconcilerIsSet(t *testing.T) {
	off := map[string]string{
		"cluster.ForeignWorks": "only where OCM's controllers manage works",
		"deploy.Accounts":      "only in the program of an author",
	}
	for path, value := range reconcilers(t) {
		for field, of := range value.Fields() {
			key := path + "." + field.Name
			switch field.Type.Kind() {
			case reflect.Interface, reflect.Pointer, reflect.Func, reflect.Chan:
				if field.IsExported() && off[key] == "" {
					assert.False(t, of.IsNil(), "%s is nil where the hub manager is put together", key)
				}
			default:
			}
		}
	}
}
