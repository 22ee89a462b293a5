// Package coexistence_test runs the program of an author (hub/addon/manager) on real API servers: on one beside our hub
// manager, on the other beside nobody, where the tests write what OCM's hub manager does. The program has the rights
// that it prints and nothing more. The tests play the clusters.
package coexistence_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/manager"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// home is the namespace of the program, and weather its add-on.
	home    = "weather-central"
	weather = "weather"
	// program is the name of its ServiceAccount.
	program = "weather-manager"
)

// hub has our hub manager; bare has none.
var hub, bare *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		hub = suite.Start(t, sandbox.Options{Name: "coexistence", Audit: true}, manifests.CRDs(), manifests.Hub())
		hub.AwaitPolicies(t)
		suite.StartHub(t, hub)
		startProgram(t, hub)
		bare = suite.Start(t, sandbox.Options{Name: "bare", Audit: true}, manifests.CRDs(), manifests.Hub())
		startProgram(t, bare)
	})
}

// newWeather returns the add-on: an object with what was configured.
func newWeather() (addon.Agent, error) {
	return addon.New(addon.Options{
		Name: weather,
		Manifests: addon.ManifestsFunc(func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			data := map[string]string{"city": fmt.Sprint(in.Values["CITY"])}
			if names := in.Choice.First(configMaps().of()); names != nil && names.Object != nil {
				data["names"] = fmt.Sprint(names.Object.Object["data"])
			}
			return []runtime.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: weather}, Data: data,
			}}, nil
		}),
		Values:     []addon.ValuesFunc{addon.GetAddOnDeploymentConfigValues(addon.ToAddOnCustomizedVariableValues)},
		ConfigGVRs: []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR(), configMaps().GroupVersionResource},
		KubeClient: &addon.KubeClient{Roles: []addon.HubRole{
			{Name: "weather-reader"}, {Kind: addon.KindRole, Name: "weather-writer", Namespace: home},
		}},
		CustomSigners: []addon.CustomSigner{{
			SignerName: "example.com/weather", CA: types.NamespacedName{Name: "weather-ca"},
		}},
		HealthProber: addon.NewWorkProber(nil),
	})
}

// startProgram prints the rights of the program, applies them, and runs it with them.
func startProgram(t suite.T, p *suite.Plane) {
	require.NoError(t, p.Apply(t.Context(), []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: `+home+`}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: weather-reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: weather-writer, namespace: `+home+`}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]
`)))
	agent, err := newWeather()
	require.NoError(t, err)
	config := manager.Config{Namespace: home, LeaderElect: true}
	objects, err := manager.Rights(config, agent)
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, p.Client.Create(t.Context(), object), "%T %s", object, object.GetName())
	}
	config.Kubeconfig = p.WriteKubeconfig(t, p.AccountConfig(t, home, program), t.TempDir(), program)
	suite.StartProgram(t, "the program of the add-on", func(ctx context.Context) error {
		return manager.Run(ctx, config, agent)
	})
}

// kind is a resource in both forms in which the API names it.
type kind struct{ schema.GroupVersionResource }

// of returns the resource as an add-on refers to it.
func (k kind) of() addonv1beta1.ConfigGroupResource {
	return addonv1beta1.ConfigGroupResource{Group: k.Group, Resource: k.Resource}
}

func configMaps() kind {
	return kind{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
}

// refused returns the requests of the program that the API server refused, from the audit log.
func refused(t *testing.T, p *suite.Plane) [][]byte {
	t.Helper()
	log, err := os.ReadFile(p.AuditLog())
	require.NoError(t, err)
	var lines [][]byte
	for line := range bytes.Lines(log) {
		// The tests act as the same account, but not as the same program.
		if bytes.Contains(line, []byte(`"userAgent":"`+program)) && bytes.Contains(line, []byte(`"code":403`)) {
			lines = append(lines, line)
		}
	}
	return lines
}
