package scenarios_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// settled waits until the Deployment of an add-on on a cluster has its pods, and returns it.
func (s story) settled(cluster string, pods int32) *appsv1.Deployment {
	s.Helper()
	d := &appsv1.Deployment{}
	suite.Eventually(s, func() error {
		if d = get(s.T, cluster, names.NamespaceAgentAddon, s.addOn, d); d.Status.ReadyReplicas != pods {
			return errors.New("not all pods are ready")
		}
		return nil
	})
	return d
}

// Shows: hub/story-variables
func TestEachClusterHasItsOwnVariables(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "breeze", file: "configured.yaml"}
	s.apply()
	for _, want := range []struct {
		cluster, tag, level, stage string
		replicas                   int32
	}{
		{east, "latest", "4", "tests", 1}, {west, "v1.2.3", "1", "production", 3},
	} {
		s.runs(want.cluster)
		image(t, want.cluster, names.NamespaceAgentAddon, "breeze", "registry.example.com/breeze:"+want.tag)
		d := s.settled(want.cluster, want.replicas)
		container := d.Spec.Template.Spec.Containers[0]
		assert.Equal(t, want.tag, d.Spec.Template.Labels["version"])
		assert.Equal(t, []string{"--cluster=" + want.cluster, "--v=" + want.level}, container.Args)
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "STAGE", Value: want.stage})
	}
	s.deleteManagement()
}

// Shows: hub/story-proxy
func TestAnAgentBehindAProxy(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "gale", file: "configured.yaml"}
	s.apply()
	s.runs(east)
	s.runs(west)
	image(t, west, names.NamespaceAgentAddon, "gale", "registry.example.com/gale:v1.2.3")
	pod := s.settled(west, 3).Spec.Template.Spec
	env := map[string]string{}
	for _, variable := range pod.Containers[0].Env {
		env[variable.Name] = variable.Value
	}
	for name, value := range map[string]string{
		"HTTP_PROXY": "http://proxy.example.com:3128", "http_proxy": "http://proxy.example.com:3128",
		"HTTPS_PROXY": "https://proxy.example.com:3129", "https_proxy": "https://proxy.example.com:3129",
		"NO_PROXY": "hub.example.com,10.0.0.1", "no_proxy": "hub.example.com,10.0.0.1",
	} {
		assert.Equal(t, value, env[name], name)
	}
	authorities := get(t, west, names.NamespaceAgentAddon, "gale-proxy-ca", &corev1.ConfigMap{})
	assert.Equal(t, map[string]string{"ca-bundle.crt": "authorities"}, authorities.Data)
	require.NotEmpty(t, pod.Volumes)
	mounts := pod.Containers[0].VolumeMounts
	require.NotEmpty(t, mounts)
	assert.Equal(t, mounts[len(mounts)-1].MountPath+"/ca-bundle.crt", env["CA_BUNDLE_FILE_PATH"])

	direct := s.settled(east, 1).Spec.Template.Spec.Containers[0]
	assert.NotContains(t, direct.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy.example.com:3128"})
	s.deleteManagement()
	goes(t, west, &corev1.ConfigMap{ObjectMeta: in("gale-proxy-ca")})
}
