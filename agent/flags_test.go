package agent

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/internal/command"
)

func TestParseFlags(t *testing.T) {
	var out bytes.Buffer
	config, err := ParseFlags("/spokelet", []string{"agent", "--cluster-name=c1", "--leader-elect=false"}, &out)
	require.NoError(t, err)
	assert.Equal(t, "c1", config.ClusterName)
	assert.False(t, config.LeaderElect)
	assert.Empty(t, config.foreign.Notes())

	out.Reset()
	_, err = ParseFlags("spokelet", []string{"--version"}, &out)
	require.ErrorIs(t, err, pflag.ErrHelp)
	assert.Contains(t, out.String(), "spokelet ")

	_, err = ParseFlags("spokelet", []string{"--no-such-flag", "--strict-flags"}, &out)
	require.ErrorContains(t, err, "--no-such-flag: unknown flag")
	_, err = ParseFlags("spokelet", []string{"agent", "--v=1", "more"}, &out)
	require.ErrorContains(t, err, "more")
}

// Shows: flags/unknown
func TestAnAgentWorksWithSettingsOfALaterRelease(t *testing.T) {
	later := []string{
		"registration", "agent", "--spoke-cluster-name=c1", "--feature-gates=ClusterProperty=true,InTwoYears=true", "--in-two-years=a",
		"--registration-auth=spiffe", "--addon-kubeclient-registration-auth=spiffe", "--workload-source-driver=nats",
	}
	config, err := ParseFlags("/registration-operator", later, io.Discard)
	require.NoError(t, err)
	require.NoError(t, config.Validate())
	assert.Equal(t, "c1 true, csr, again csr, kube", fmt.Sprintf("%s %t, %s, again %s, %s", config.ClusterName,
		config.Gates.ClusterProperty, config.RegistrationAuth, config.AddonDriver, config.WorkSource))
	var unknown []string
	for _, note := range config.foreign.Notes() {
		if note.Unknown {
			unknown = append(unknown, note.Flag)
		}
	}
	assert.Equal(t, []string{
		"--in-two-years", "--feature-gates=InTwoYears", "--registration-auth", "--addon-kubeclient-registration-auth",
		"--workload-source-driver",
	}, unknown)

	_, err = ParseFlags("/registration-operator", append(later, "--strict-flags"), io.Discard)
	for _, flag := range unknown {
		require.ErrorContains(t, err, flag, "all is told at once")
	}
	config, err = ParseFlags("/registration-operator", []string{"registration", "agent", "--registration-auth=awsirsa"}, io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, config.Validate(), "keep OCM's agent for clusters that join by awsirsa", "what is known is refused")
}

func TestTheFirstWordsSelectWhatTheProgramDoes(t *testing.T) {
	klusterlet := func(duties Duties) Config {
		return Config{Duties: duties, HealthPort: 8443, HubKubeconfigDir: "/spoke/hub-kubeconfig"}
	}
	tests := map[string]struct {
		command []string
		want    Config
		problem string
	}{
		"nothing is the whole agent":     {command: []string{"/spokelet"}, want: Config{Duties: both()}},
		"the word agent changes nothing": {command: []string{"/spokelet", "agent"}, want: Config{Duties: both()}},
		"a path of OCM's image behind our program": {
			command: []string{"/spokelet", "/registration", "agent"}, want: klusterlet(Duties{Registration: true}),
		},
		"that of works": {command: []string{"/spokelet", "/work", "agent"}, want: klusterlet(Duties{Works: true})},
		"that of both": {
			command: []string{"/spokelet", "/registration-operator", "agent"}, want: klusterlet(both()),
		},
		"a path of OCM's image as our program": {
			command: []string{"/registration", "agent"}, want: klusterlet(Duties{Registration: true}),
		},
		"without the word agent":         {command: []string{"work"}, want: klusterlet(Duties{Works: true})},
		"the argument beats the program": {command: []string{"work", "registration"}, want: klusterlet(Duties{Registration: true})},
		"a part of the hub is refused":   {command: []string{"/spokelet", "/registration", "controller"}, problem: "spokelet-hub"},
		"any other word is refused":      {command: []string{"/spokelet", "agnet"}, problem: `"agnet" is not a command`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFlags(tc.command[0], tc.command[1:], io.Discard)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			require.NoError(t, got.Validate())
			assert.Equal(t, tc.want, Config{
				Duties: got.Duties, HealthPort: got.HealthPort, HubKubeconfigDir: got.HubKubeconfigDir,
			})
			assert.Equal(t, command.Election{
				LeaderElect: true, LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
			}, got.Election)
		})
	}
}

func TestTheHealthPortOfAKlusterlet(t *testing.T) {
	for args, want := range map[string]int{"--health-port=0": 8443, "--health-port=9443": 9443, "--v=1": 8443} {
		config, err := ParseFlags("registration", []string{"agent", args}, io.Discard)
		require.NoError(t, err)
		assert.Equal(t, want, config.HealthPort, args)
	}
	config, err := ParseFlags("work", []string{"agent", "--listen=127.0.0.1:1"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:1", config.Listen)
}

// klusterletFlags are all flags of OCM's agents, of v1.3.1 and later: what Deployments of a Klusterlet pass, what the
// agents know besides, and what their programs have from their libraries.
var klusterletFlags = []string{
	"--spoke-cluster-name=c1", "--cluster-name=c1", "--agent-id=a1", "--spoke-kubeconfig=/spoke/config/kubeconfig",
	"--hub-kubeconfig-dir=/spoke/hub-kubeconfig", "--hub-kubeconfig=/spoke/hub-kubeconfig/kubeconfig",
	"--kube-api-qps=50", "--kube-api-burst=100", "--hub-kube-api-qps=50", "--hub-kube-api-burst=100",
	"--disable-leader-election", "--leader-election-lease-duration=137s", "--leader-election-renew-deadline=107s",
	"--leader-election-retry-period=26s",
	"--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"--health-port=8444",

	"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig", "--bootstrap-kubeconfig-secret=bootstrap-hub-kubeconfig",
	"--hub-kubeconfig-secret=other", "--spoke-external-server-urls=https://c1.example.com",
	"--cluster-healthcheck-period=1m", "--max-custom-cluster-claims=20", "--reserved-cluster-claim-suffixes=a.io,b.io",
	"--cluster-annotations=agent.open-cluster-management.io/x=1", "--cluster-labels=a=b",
	"--report-hosting-cluster=true", "--hosting-cluster-name=h",
	"--client-cert-expiration-seconds=3600", "--registration-auth=csr", "--hub-connection-timeout-seconds=600",
	"--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600",
	"--hub-cluster-arn=x", "--managed-cluster-arn=x", "--managed-cluster-role-suffix=x",
	"--grpc-bootstrap-config=x", "--grpc-config=x",

	"--workload-source-driver=kube", "--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
	"--cloudevents-client-id=c1-work-agent", "--cloudevents-client-codecs=manifestbundle",
	"--status-sync-interval=60s", "--appliedmanifestwork-eviction-grace-period=1h", "--max-json-raw-length=1024",
	"--max-feedback-watch=50", "--workload-agent-workers=10",

	"--config=/etc/config.yaml", "--kubeconfig=/kubeconfig", "--namespace=open-cluster-management-agent",
	"--listen=0.0.0.0:8443", "--terminate-on-files=/spoke/config/kubeconfig",
	"--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig",
	"-v=2", "--v=2", "--vmodule=a=1", "--log-flush-frequency=5s", "--logging-format=text",
	"--log-json-info-buffer-size=0", "--log-text-info-buffer-size=0", "--log-json-split-stream=false",
	"--log-text-split-stream=false",

	"--feature-gates=AddonManagement=true", "--feature-gates=ClusterClaim=true", "--feature-gates=ClusterProperty=true",
	"--feature-gates=ExecutorValidatingCaches=true", "--feature-gates=RawFeedbackJsonString=true",
	"--feature-gates=SIGPlacementDecision=true", "--feature-gates=V1beta1CSRAPICompatibility=true",
	"--feature-gates=MultipleHubs=false", "--feature-gates=AllAlpha=false", "--feature-gates=AllBeta=true",
}

// Shows: registration/options-validated
func TestEveryFlagOfAKlusterletIsAcceptedByEachProgram(t *testing.T) {
	for _, program := range []string{"registration", "work", "registration-operator", "klusterlet-agent", "spokelet"} {
		for _, flag := range klusterletFlags {
			config, err := ParseFlags(program, []string{"agent", flag}, io.Discard)
			require.NoError(t, err, "%s %s", program, flag)
			if program != "spokelet" || flag != "--hub-kubeconfig=/spoke/hub-kubeconfig/kubeconfig" {
				require.NoError(t, config.Validate(), "%s %s", program, flag)
			}
		}
		config, err := ParseFlags(program, append([]string{"agent"}, klusterletFlags...), io.Discard)
		require.NoError(t, err, program)
		require.NoError(t, config.Validate(), program)
	}
}

func TestAFlagWithoutEffectIsNotedWithTheReason(t *testing.T) {
	config, err := ParseFlags("registration-operator", append([]string{"agent"}, klusterletFlags...), io.Discard)
	require.NoError(t, err)
	var names []string
	for _, given := range config.foreign.Notes() {
		assert.NotEmpty(t, given.Reason, given.Flag)
		assert.NotContains(t, names, given.Flag, "each is told once")
		names = append(names, given.Flag)
	}
	for _, name := range []string{
		"--terminate-on-files", "--status-sync-interval", "--max-feedback-watch", "--workload-source-config",
		"--cloudevents-client-codecs", "--config", "--vmodule", "--log-flush-frequency", "--logging-format",
		"--feature-gates=SIGPlacementDecision",
	} {
		assert.Contains(t, names, name)
	}
	for _, name := range []string{"--listen", "--health-port", "--tls-min-version", "--leader-election-retry-period"} {
		assert.NotContains(t, names, name, "it has an effect")
	}
	assert.Equal(t, ptr.To("h"), config.hostingClaim("c1"))
	works, err := ParseFlags("work", []string{"agent", "--workload-source-config=/hub/kubeconfig"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "/hub/kubeconfig", works.hubFile())
	assert.Empty(t, works.foreign.Notes(), "works alone are read with it")
}

func TestTheClaimOnTheClusterOfTheAgent(t *testing.T) {
	for flags, want := range map[string]*string{
		"": nil, "--hosting-cluster-name=h": nil,
		"--report-hosting-cluster":                                                ptr.To("c1"),
		"--report-hosting-cluster --hosting-cluster-name=h":                       ptr.To("h"),
		"--report-hosting-cluster --spoke-kubeconfig=/x":                          ptr.To(""),
		"--report-hosting-cluster --spoke-kubeconfig=/x --hosting-cluster-name=h": ptr.To("h"),
	} {
		config, err := ParseFlags("spokelet", strings.Fields("agent "+flags), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, want, config.hostingClaim("c1"), flags)
	}
}

func TestFlagsOfDriversThatAreNotSupportedEndTheProgram(t *testing.T) {
	for _, flag := range []string{"--registration-auth=awsirsa", "--registration-auth=grpc", "--workload-source-driver=grpc"} {
		config, err := ParseFlags("registration-operator", []string{"agent", flag}, io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, config.Validate(), "is not supported", flag)
	}
}

func TestTheHubsOfAKlusterlet(t *testing.T) {
	config, err := ParseFlags("registration-operator", []string{
		"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=/spoke/hub1/kubeconfig",
		"--bootstrap-kubeconfigs=secret:hub2", "--hub-connection-timeout-seconds=180",
	}, io.Discard)
	require.NoError(t, err)
	require.NoError(t, config.Validate())
	assert.Equal(t, 3*time.Minute, config.HubTimeout)
	assert.Equal(t, []bootstrap.Source{
		{File: "/spoke/hub1/kubeconfig", Secret: types.NamespacedName{Namespace: config.Namespace, Name: "bootstrap-hub-kubeconfig"}},
		{Secret: types.NamespacedName{Namespace: config.Namespace, Name: "hub2"}},
	}, config.sources())
	_, err = ParseFlags("agent", []string{"--hub-connection-timeout-seconds=179"}, io.Discard)
	require.ErrorContains(t, err, "at least 180")
	assert.True(t, slices.Contains(klusterletFlags, "--disable-leader-election"))
	config, err = ParseFlags("agent", []string{"--disable-leader-election"}, io.Discard)
	require.NoError(t, err)
	assert.False(t, config.LeaderElect)
}
