package agent

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/agent/bootstrap"
)

// Arguments that OCM's operator gives to the containers of a Klusterlet, of v1.3.1 and later, written out as they stand
// in a rendered Deployment. Everything that is optional is set, and there is one replica.
func registrationContainer() []string {
	return []string{
		"/registration", "agent",
		"--spoke-cluster-name=cluster1",
		"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
		"--feature-gates=AddonManagement=true",
		"--feature-gates=ClusterProperty=true",
		"--spoke-external-server-urls=https://cluster1.example.com",
		"--disable-leader-election",
		"--client-cert-expiration-seconds=3600",
		"--cluster-annotations=agent.open-cluster-management.io/a=1,agent.open-cluster-management.io/b=2",
		"--cluster-labels=region=eu,zone=a",
		"--kube-api-qps=20.5",
		"--kube-api-burst=40",
		"--max-custom-cluster-claims=30",
		"--reserved-cluster-claim-suffixes=a.example.com,b.example.com",
		"--addon-kubeclient-registration-auth=token",
		"--addon-token-expiration-seconds=7200",
		"--tls-min-version=VersionTLS13",
		"--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
		"--health-port=9443",
	}
}

func workContainer() []string {
	return []string{
		"/work", "agent",
		"--spoke-cluster-name=cluster1",
		"--workload-source-driver=kube",
		"--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
		"--agent-id=5f4dcc3b-aa76-41d6-8327-deb882cf99bb",
		"--feature-gates=ExecutorValidatingCaches=true",
		"--feature-gates=RawFeedbackJsonString=true",
		"--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig",
		"--status-sync-interval=1m0s",
		"--kube-api-qps=20.5",
		"--kube-api-burst=40",
		"--hub-kube-api-qps=10",
		"--hub-kube-api-burst=60",
		"--appliedmanifestwork-eviction-grace-period=10m0s",
		"--tls-min-version=VersionTLS12",
		"--health-port=9443",
	}
}

func singletonContainer() []string {
	return []string{
		"/registration-operator", "agent",
		"--spoke-cluster-name=cluster1",
		"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
		"--agent-id=5f4dcc3b-aa76-41d6-8327-deb882cf99bb",
		"--workload-source-driver=kube",
		"--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
		"--feature-gates=ExecutorValidatingCaches=true",
		"--feature-gates=AddonManagement=true",
		"--status-sync-interval=60s",
		"--report-hosting-cluster=true",
		"--hosting-cluster-name=hosting",
	}
}

// hosted are the arguments that a Klusterlet in a hosted mode adds.
func hosted(container []string) []string {
	return append(container, "--spoke-kubeconfig=/spoke/config/kubeconfig", "--terminate-on-files=/spoke/config/kubeconfig")
}

// severalHubs is a Klusterlet with the gate MultipleHubs.
func severalHubs(container []string) []string {
	one := slices.Index(container, "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig")
	return slices.Replace(container, one, one+1, "--bootstrap-kubeconfigs=/spoke/hub1/kubeconfig",
		"--bootstrap-kubeconfigs=/spoke/hub2/kubeconfig", "--hub-connection-timeout-seconds=180",
		"--feature-gates=MultipleHubs=true")
}

// settings are what a process does with the arguments.
type settings struct {
	duties                       Duties
	cluster, id, hubDir, hubFile string
	bootstrap                    string
	spoke                        string
	leader                       bool
	port                         int
}

func TestTheContainersOfAKlusterletRunOurAgent(t *testing.T) {
	const uid = "5f4dcc3b-aa76-41d6-8327-deb882cf99bb"
	const dir, file = "/spoke/hub-kubeconfig", "/spoke/hub-kubeconfig/kubeconfig"
	registering := settings{
		duties: Duties{Registration: true}, cluster: "cluster1", hubDir: dir, hubFile: file,
		bootstrap: "/spoke/bootstrap/kubeconfig", port: 9443,
	}
	working := settings{
		duties: Duties{Works: true}, cluster: "cluster1", id: uid, hubDir: dir, hubFile: file, leader: true, port: 9443,
	}
	single := settings{
		duties: both(), cluster: "cluster1", id: uid, hubDir: dir, hubFile: file, bootstrap: "/spoke/bootstrap/kubeconfig",
		leader: true, port: 8443,
	}
	in := func(s settings, spoke string) settings { s.spoke = spoke; return s }
	without := single
	without.bootstrap = ""
	tests := map[string]struct {
		container []string
		want      settings
	}{
		"the registration agent":                     {registrationContainer(), registering},
		"the work agent":                             {workContainer(), working},
		"one agent for both":                         {singletonContainer(), single},
		"one agent with several hubs":                {severalHubs(singletonContainer()), without},
		"the registration agent of a hosted cluster": {hosted(registrationContainer()), in(registering, "/spoke/config/kubeconfig")},
		"the work agent of a hosted cluster":         {hosted(workContainer()), in(working, "/spoke/config/kubeconfig")},
		"one agent for both of a hosted cluster":     {hosted(singletonContainer()), in(single, "/spoke/config/kubeconfig")},
	}
	for name, tc := range tests {
		// The arguments follow the program of our image; a container that names a command replaces it.
		for how, command := range map[string][]string{
			"as arguments": append([]string{"/spokelet"}, tc.container...), "as command": tc.container,
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				c, err := ParseFlags(command[0], command[1:], io.Discard)
				require.NoError(t, err)
				require.NoError(t, c.Validate())
				assert.Equal(t, tc.want, settings{
					duties: c.Duties, cluster: c.ClusterName, id: c.AgentID, hubDir: c.HubKubeconfigDir, hubFile: c.hubFile(),
					bootstrap: c.BootstrapKubeconfig, spoke: c.SpokeKubeconfig, leader: c.LeaderElect, port: c.HealthPort,
				})
			})
		}
	}
}

func TestEveryArgumentOfAKlusterletHasItsEffectOrIsNoted(t *testing.T) {
	noted := []string{
		"--cluster-labels", "--status-sync-interval",
		"--terminate-on-files", "--feature-gates=ExecutorValidatingCaches", "--workload-source-config",
	}
	for _, container := range [][]string{hosted(registrationContainer()), hosted(workContainer()), hosted(singletonContainer())} {
		c, err := ParseFlags(container[0], container[1:], io.Discard)
		require.NoError(t, err)
		for _, note := range c.foreign.Notes() {
			assert.True(t, slices.ContainsFunc(noted, func(flag string) bool { return strings.HasPrefix(note.Flag, flag) }), note.Flag)
		}
	}
	c, err := ParseFlags("/registration", registrationContainer()[1:], io.Discard)
	require.NoError(t, err)
	assert.True(t, c.Gates.ClusterProperty)
	assert.Equal(t, []string{"https://cluster1.example.com"}, c.ExternalServerURLs)
	assert.EqualValues(t, 3600, c.CertExpirationSeconds)
	assert.Equal(t, map[string]string{
		"agent.open-cluster-management.io/a": "1", "agent.open-cluster-management.io/b": "2",
	}, c.ClusterAnnotations)
	assert.InDelta(t, 20.5, c.SpokeQPS, 0.01)
	assert.Equal(t, 40, c.SpokeBurst)
	assert.Equal(t, 30, c.Claims.MaxCustom)
	assert.Equal(t, "token", c.AddonDriver)
	assert.EqualValues(t, 7200, c.AddonTokenExpirationSeconds)
	assert.Equal(t, "VersionTLS13", c.TLS.MinVersion)
	assert.Len(t, c.TLS.CipherSuites, 2)

	c, err = ParseFlags("/work", workContainer()[1:], io.Discard)
	require.NoError(t, err)
	assert.True(t, c.Gates.RawFeedback)
	assert.InDelta(t, 10, c.HubQPS, 0.01)
	assert.Equal(t, 60, c.HubBurst)
	assert.Equal(t, 10*time.Minute, c.EvictionGracePeriod)

	c, err = ParseFlags("/registration-operator", severalHubs(singletonContainer())[1:], io.Discard)
	require.NoError(t, err)
	secret := types.NamespacedName{Namespace: c.Namespace, Name: "bootstrap-hub-kubeconfig"}
	assert.Equal(t, []bootstrap.Source{
		{File: "/spoke/hub1/kubeconfig", Secret: secret}, {File: "/spoke/hub2/kubeconfig", Secret: secret},
	}, c.sources())
	assert.Equal(t, 3*time.Minute, c.HubTimeout)
}
