package klusterlet

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/agent"
)

// modes are all that the operator renders.
func modes() map[string]Klusterlet {
	all := map[string]Klusterlet{}
	for _, singleton := range []bool{false, true} {
		for _, hosted := range []bool{false, true} {
			for _, replicas := range []int{1, 3} {
				for _, settings := range []Settings{Some, None, All, Announced} {
					name := fmt.Sprintf("singleton=%t hosted=%t replicas=%d settings=%d", singleton, hosted, replicas, settings)
					all[name] = Klusterlet{
						Name: "klusterlet", Namespace: "agents", ManagedNamespace: "managed", Cluster: "cluster1", UID: "uid",
						Image: "example.com/agent:v1", Replicas: replicas, Hosted: hosted, Singleton: singleton, Settings: settings,
					}
				}
			}
		}
	}
	return all
}

// Shows: registration/klusterlet-arguments
func TestTheAgentAcceptsWhatTheOperatorRenders(t *testing.T) {
	for name, k := range modes() {
		t.Run(name, func(t *testing.T) {
			deployments, err := k.Deployments()
			require.NoError(t, err)
			duties := agent.Duties{}
			for _, d := range deployments {
				pod := d.Spec.Template.Spec
				c := pod.Containers[0]
				// The image has no other entry point than our program, so the first argument is the path in OCM's image.
				config, err := agent.ParseFlags("/spokelet", c.Args, io.Discard)
				require.NoError(t, err)
				require.NoError(t, config.Validate())
				duties.Registration = duties.Registration || config.Duties.Registration
				duties.Works = duties.Works || config.Duties.Works
				assert.Equal(t, "cluster1", config.ClusterName)
				assert.Equal(t, k.Elects(), config.LeaderElect)
				assert.Equal(t, k.Hosted, config.SpokeKubeconfig != "")
				for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
					assert.Equal(t, config.HealthPort, probe.HTTPGet.Port.IntValue())
				}
				for _, path := range []string{
					config.BootstrapKubeconfig, config.WorkSourceConfig, config.SpokeKubeconfig, config.HubKubeconfigDir,
				} {
					assert.True(t, path == "" || mounted(c, path), "%s is on a volume", path)
				}
			}
			assert.Equal(t, agent.Duties{Registration: true, Works: true}, duties)
		})
	}
}

// mounted reports whether a path is on a volume of a container.
func mounted(c corev1.Container, path string) bool {
	for _, mount := range c.VolumeMounts {
		if path == mount.MountPath || strings.HasPrefix(path, mount.MountPath+"/") {
			return true
		}
	}
	return false
}

// A release that is not out yet brings what is not known: all of it is told, and nothing but that.
func TestOnlyWhatNoReleaseHasIsUnknown(t *testing.T) {
	for name, k := range modes() {
		t.Run(name, func(t *testing.T) {
			deployments, err := k.Deployments()
			require.NoError(t, err)
			for _, d := range deployments {
				args := d.Spec.Template.Spec.Containers[0].Args
				_, err := agent.ParseFlags("/spokelet", append(args, "--strict-flags"), io.Discard)
				if k.Settings != Announced {
					require.NoError(t, err)
					continue
				}
				require.ErrorContains(t, err, UnknownFlag)
				require.ErrorContains(t, err, UnknownGate)
				assert.Len(t, strings.Split(err.Error(), "\n"), 2)
			}
		})
	}
}

func TestAKlusterletThatReportsItsHostMayWriteOneClaim(t *testing.T) {
	for name, k := range modes() {
		t.Run(name, func(t *testing.T) {
			plain, err := k.Managed()
			require.NoError(t, err)
			assert.NotContains(t, string(plain), "hosting-cluster")
			k.HostingCluster = "host"
			reporting, err := k.Managed()
			require.NoError(t, err)
			assert.Contains(t, string(reporting), "resourceNames: [hosting-cluster.open-cluster-management.io]")
			deployments, err := k.Deployments()
			require.NoError(t, err)
			assert.Contains(t, deployments[0].Spec.Template.Spec.Containers[0].Args, "--hosting-cluster-name=host")
		})
	}
}

func TestRightsAreRenderedForEachSide(t *testing.T) {
	for name, k := range modes() {
		t.Run(name, func(t *testing.T) {
			management, err := k.Management()
			require.NoError(t, err)
			managed, err := k.Managed()
			require.NoError(t, err)
			for _, text := range []string{string(management), string(managed)} {
				assert.Contains(t, text, "name: "+k.WorkAccount())
				assert.NotContains(t, text, "{{")
			}
			assert.Equal(t, k.Hosted, !strings.Contains(string(managed), "namespace: "+k.Namespace))
		})
	}
}
