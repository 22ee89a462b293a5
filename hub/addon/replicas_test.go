package addon_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// configOf returns an AddOnDeploymentConfig with a field.
func configOf(t *testing.T, replicaConfigs string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: addon.open-cluster-management.io/v1beta1
kind: AddOnDeploymentConfig
metadata: {namespace: ns, name: config}
spec: {customizedVariables: [{name: A, value: b}], replicaConfigs: `+replicaConfigs+`}`), &u.Object))
	return u
}

func chosenConfigs(all ...*unstructured.Unstructured) addon.Request {
	var request addon.Request
	for _, u := range all {
		request.Choice.Configs = append(request.Choice.Configs,
			addon.ChosenConfig{Object: u, ConfigGroupResource: confighash.DeploymentConfig()})
	}
	return request
}

// Shows: hub/library-replicas
func TestABuilderGivesDeploymentsTheReplicasOfTheConfiguration(t *testing.T) {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "proxy"},
	}}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "proxy"},
	}}
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	inner := addon.ManifestsFunc(func(context.Context, addon.Input) ([]runtime.Object, error) {
		return []runtime.Object{agent, raw, set, daemons}, nil
	})
	build := func(request addon.Request) []runtime.Object {
		made, err := addon.ReplicasFromDeploymentConfig(inner).Build(t.Context(), addon.Input{Request: request})
		require.NoError(t, err)
		require.Len(t, made, 4)
		return made
	}
	for _, made := range [][]runtime.Object{
		build(addon.Request{}), build(chosenConfigs(configOf(t, "null"))), build(chosenConfigs(configOf(t, "[]"))),
	} {
		assert.Equal(t, []runtime.Object{agent, raw, set, daemons}, made)
	}
	made := build(chosenConfigs(
		configOf(t, `[{workloadID: "*", replicas: 7}]`),
		configOf(t, `[{workloadID: "deployments:*", replicas: 3}, {workloadID: "deployments:agent", replicas: 0},
			{workloadID: "*:prox*", replicas: 2}]`),
	))
	scaled, is := made[0].(*appsv1.Deployment)
	require.True(t, is)
	assert.EqualValues(t, 0, *scaled.Spec.Replicas, "the last entry that matches counts")
	assert.Nil(t, agent.Spec.Replicas, "what the builder returned is shared")
	proxy, is := made[1].(*unstructured.Unstructured)
	require.True(t, is)
	assert.Equal(t, map[string]any{"replicas": int64(2)}, proxy.Object["spec"])
	assert.NotContains(t, raw.Object, "spec")
	assert.Same(t, set, made[2])
	assert.Same(t, daemons, made[3])
}

func TestReplicasThatCannotBeReadAreReported(t *testing.T) {
	for name, text := range map[string]string{
		"a negative number": `[{workloadID: "deployments:a", replicas: -1}]`,
		"a text":            `[{workloadID: "deployments:a", replicas: "3"}]`,
		"no list":           `{}`,
		"a large number":    `[{workloadID: "deployments:a", replicas: 3000000000}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := addon.GetReplicaConfigs(chosenConfigs(configOf(t, text)))
			assert.True(t, addon.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, "AddOnDeploymentConfig ns/config, .spec.replicaConfigs: ")
		})
	}
	_, err := addon.GetReplicaConfigs(chosenConfigs(nil))
	assert.True(t, addon.IsNotReady(err), "%v", err)
}

// A rollout brings other replicas, as any other content.
//
// Shows: hub/replicas-hashed
func TestReplicasArePartOfTheHash(t *testing.T) {
	hash := func(u *unstructured.Unstructured) string {
		found, err := confighash.SpecHash(u)
		require.NoError(t, err)
		return found
	}
	one := configOf(t, `[{workloadID: "deployments:a", replicas: 1}]`)
	assert.NotEqual(t, hash(one), hash(configOf(t, `[{workloadID: "deployments:a", replicas: 2}]`)))
	packed, err := confighash.Pack(one.DeepCopy())
	require.NoError(t, err)
	cached, is := packed.(*unstructured.Unstructured)
	require.True(t, is)
	assert.Equal(t, hash(one), hash(cached))
}
