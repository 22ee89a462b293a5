package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// noon is when the API server answered first.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	up := record{since: noon, outages: 3}
	later := noon.Add(time.Hour)
	tests := map[string]struct {
		before record
		silent bool
		want   record
	}{
		"the first answer begins the record":     {record{}, false, record{since: later}},
		"a first answer after silence does, too": {record{}, true, record{since: later}},
		"an answer after an answer is no change": {up, false, up},
		"an answer after silence is an outage":   {up, true, record{since: later, outages: 4}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.before.next(later, tc.silent))
		})
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	assert.Equal(t, record{since: noon, outages: 3}, read(record{since: noon, outages: 3}.data()))
	assert.Equal(t, record{}, read(nil))
	assert.Equal(t, record{}, read(map[string]string{"since": "yesterday", "outages": "1"}))
	assert.Equal(t, record{}, read(map[string]string{"since": "2026-11-22T12:00:00Z", "outages": "few"}))
}

func TestTheAPIServerIsWatched(t *testing.T) {
	client := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: account, UID: "u"}})
	failing := false
	client.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
		if failing {
			return true, nil, errors.New("no answer")
		}
		return false, nil, nil
	})
	m := &monitor{client: client, namespace: "ns"}
	require.NoError(t, m.start(t.Context(), noon))
	recorded := func() *corev1.ConfigMap {
		found, err := client.CoreV1().ConfigMaps("ns").Get(t.Context(), addOn, metav1.GetOptions{})
		require.NoError(t, err)
		return found
	}
	assert.Equal(t, record{since: noon}, read(recorded().Data))
	assert.Equal(t, "u", string(recorded().OwnerReferences[0].UID), "it goes with the ServiceAccount")
	require.NoError(t, m.healthy(t.Context()))

	failing = true
	require.ErrorContains(t, m.check(t.Context(), noon.Add(time.Minute)), "no answer")
	require.ErrorContains(t, m.healthy(t.Context()), "the last check failed: no answer", "the lease is not renewed")
	failing = false
	require.NoError(t, m.check(t.Context(), noon.Add(2*time.Minute)))
	assert.Equal(t, record{since: noon.Add(2 * time.Minute), outages: 1}, read(recorded().Data))
	require.NoError(t, m.healthy(t.Context()))

	client.ClearActions()
	require.NoError(t, m.check(t.Context(), noon.Add(3*time.Minute)))
	for _, action := range client.Actions() {
		assert.Equal(t, "get", action.GetVerb(), "nothing changed")
	}
}

func TestWithoutItsServiceAccountTheAgentEnds(t *testing.T) {
	m := &monitor{client: fake.NewClientset(), namespace: "ns"}
	require.ErrorContains(t, m.start(t.Context(), noon), "reading ServiceAccount ns/uptime-agent")
	require.ErrorContains(t, run(t.Context(), []string{"--interval=0s"}), "--interval must be positive")
	require.ErrorContains(t, run(t.Context(), []string{"--kubeconfig=/none"}), "reading the kubeconfig")
}

// The agent needs package lease, two leaves of the kit that this imports, and nothing of the hub.
func TestTheAgentImportsNothingOfTheHub(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	assert.Contains(t, linked, "github.com/spokelet/spokelet/lease")
	for _, path := range linked {
		switch {
		case path == "github.com/spokelet/spokelet/lease", path == "github.com/spokelet/spokelet/internal/names",
			path == "github.com/spokelet/spokelet/internal/pause":
			continue
		case strings.HasPrefix(path, "github.com/spokelet/"), strings.HasPrefix(path, "open-cluster-management.io/"),
			strings.HasPrefix(path, "sigs.k8s.io/controller-runtime"):
			t.Errorf("the agent links %s", path)
		}
	}
}
