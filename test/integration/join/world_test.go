package join_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// member is one cluster with its agent, which has a namespace of its own on the first hub's control plane.
type member struct {
	t *testing.T
	// name is the name of the cluster and, with a suffix, of the namespace.
	name, namespace, dir string
	config               agent.Config
	// agent is nil until start.
	agent *suite.Program
}

// newMember prepares a cluster whose name starts as given and was never used before. Its bootstrap kubeconfig is the
// Secret; nothing is there yet. From here on the test runs beside others: most of them wait for certificates to expire.
func newMember(t *testing.T, prefix string) *member {
	t.Helper()
	t.Parallel()
	name := suite.UniqueName(prefix)
	m := &member{t: t, name: name, namespace: name + "-agent", dir: t.TempDir()}
	require.NoError(t, first.Client.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: m.namespace},
	}))
	m.config = agent.DefaultConfig()
	m.config.ClusterName, m.config.Namespace, m.config.LeaderElect = name, m.namespace, false
	m.config.Kubeconfig = first.WriteKubeconfig(t, own, m.dir, "own")
	m.config.HealthAddress = "127.0.0.1:" + strconv.Itoa(suite.FreePort(t))
	return m
}

// write writes a file into the directory of the member and returns its path.
func (m *member) write(name string, data []byte) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	require.NoError(m.t, os.WriteFile(path, data, 0o600))
	return path
}

// start runs the agent until it is stopped or the test ends.
func (m *member) start() {
	m.t.Helper()
	if m.agent != nil {
		m.agent.Start()
		return
	}
	m.agent = suite.StartProgram(m.t, "the agent", func(ctx context.Context) error { return agent.Run(ctx, m.config) })
}

// stop ends the agent.
func (m *member) stop() { m.agent.Stop() }

// restart stops the agent and starts it again.
func (m *member) restart() {
	m.t.Helper()
	m.stop()
	m.start()
}

// state holds what the agent says that it is doing, and whether it says that it is ready.
func (m *member) state() (text string, ready bool) {
	m.t.Helper()
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://"+m.config.HealthAddress+"/readyz", nil)
	require.NoError(m.t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(m.t, err)
	return strings.TrimSpace(string(body)), answer.StatusCode == http.StatusOK
}

// awaitState waits until the agent says something with the text in it.
func (m *member) awaitState(text string) {
	m.t.Helper()
	m.eventually(func() bool {
		said, _ := m.state()
		return strings.Contains(said, text)
	}, "the agent must say %q", text)
}

func (m *member) awaitServing() {
	m.t.Helper()
	m.eventually(func() bool { _, ready := m.state(); return ready }, "the agent serves")
}

// way is a bootstrap kubeconfig that leads to a hub.
type way struct {
	hub *hubSide
	// entry is the name of the cluster entry, server and proxy are how the hub is reached; empty for the usual.
	entry, server, proxy string
	// ca are further authorities to trust.
	ca []byte
	// token replaces the token of the bootstrap identity.
	token string
}

// kubeconfig writes the way down.
func (w way) kubeconfig(t *testing.T) []byte {
	t.Helper()
	entry, server, token := "hub", w.hub.Host, w.hub.bootstrap.BearerToken
	if w.entry != "" {
		entry = w.entry
	}
	if w.server != "" {
		server = w.server
	}
	if w.token != "" {
		token = w.token
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{entry: {
			Server: server, ProxyURL: w.proxy, CertificateAuthorityData: append(w.hub.CA(), w.ca...),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"bootstrap": {Cluster: entry, AuthInfo: "bootstrap"}},
		CurrentContext: "bootstrap",
	})
	require.NoError(t, err)
	return data
}

// bootstrapSecret puts a bootstrap kubeconfig into a Secret of the agent's namespace, the usual one or another.
func (m *member) bootstrapSecret(kubeconfig []byte, name ...string) {
	m.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: append(name, names.SecretBootstrap)[0]},
		Data:       map[string][]byte{csr.KeyKubeconfig: kubeconfig},
	}
	err := first.Client.Create(m.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = first.Client.Update(m.t.Context(), secret)
	}
	require.NoError(m.t, err)
}

// secret returns the stored credential; nil when there is none.
func (m *member) secret() *corev1.Secret {
	m.t.Helper()
	return m.secretNamed(m.config.HubSecret)
}

// awaitExpiry waits until a certificate has expired.
func (m *member) awaitExpiry(certificate []byte) {
	m.t.Helper()
	block, _ := pem.Decode(certificate)
	require.NotNil(m.t, block)
	parsed, err := x509.ParseCertificate(block.Bytes)
	require.NoError(m.t, err)
	m.eventually(func() bool { return time.Now().After(parsed.NotAfter) }, "the certificate expires")
}

// secretNamed returns a Secret in the agent's namespace; nil when there is none.
func (m *member) secretNamed(name string) *corev1.Secret {
	m.t.Helper()
	var secret corev1.Secret
	err := first.Client.Get(m.t.Context(), types.NamespacedName{Namespace: m.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(m.t, err)
	return &secret
}

// adoptName takes over the name that the agent drew for its cluster, once it is known.
func (m *member) adoptName() {
	m.t.Helper()
	if pending := m.secretNamed(m.config.HubSecret + "-pending"); pending != nil {
		m.name = string(pending.Data[csr.KeyClusterName])
		m.config.ClusterName = m.name
	}
}

// certificate is the stored certificate; nil when there is none.
func (m *member) certificate() []byte {
	m.t.Helper()
	if secret := m.secret(); secret != nil {
		return secret.Data[csr.KeyCertificate]
	}
	return nil
}

// awaitNewCertificate waits until the stored certificate is another one.
func (m *member) awaitNewCertificate(former []byte) {
	m.t.Helper()
	m.eventually(func() bool {
		now := m.certificate()
		return len(now) > 0 && !bytes.Equal(now, former)
	}, "another certificate is stored")
}

// cluster returns the ManagedCluster on a hub; nil when there is none.
func (m *member) cluster(h *hubSide) *clusterv1.ManagedCluster {
	m.t.Helper()
	var found clusterv1.ManagedCluster
	err := h.Client.Get(m.t.Context(), types.NamespacedName{Name: m.name}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(m.t, err)
	return &found
}

// requests returns the request objects of the cluster itself on a hub.
func (m *member) requests(h *hubSide) []certificatesv1.CertificateSigningRequest {
	m.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(m.t, h.Client.List(m.t.Context(), &list, client.MatchingLabels{names.LabelClusterName: m.name}))
	var own []certificatesv1.CertificateSigningRequest
	for _, request := range list.Items {
		if request.Labels[names.LabelAddonName] == "" {
			own = append(own, request)
		}
	}
	return own
}

// signed returns the certificate of a request.
func (m *member) signed(h *hubSide, name string) []byte {
	m.t.Helper()
	var request certificatesv1.CertificateSigningRequest
	require.NoError(m.t, h.Client.Get(m.t.Context(), types.NamespacedName{Name: name}, &request))
	return request.Status.Certificate
}

// undecided returns those that nobody decided about.
func (m *member) undecided(h *hubSide) []certificatesv1.CertificateSigningRequest {
	m.t.Helper()
	var open []certificatesv1.CertificateSigningRequest
	for _, request := range m.requests(h) {
		if csr.Undecided(&request) {
			open = append(open, request)
		}
	}
	return open
}

// approve waits for a request and approves it, as a person does.
func (m *member) approve(h *hubSide) {
	m.t.Helper()
	m.decide(h, certificatesv1.CertificateApproved)
}

func (m *member) decide(h *hubSide, kind certificatesv1.RequestConditionType) {
	m.t.Helper()
	m.eventually(func() bool { return len(m.undecided(h)) > 0 }, "a request to decide about")
	for _, request := range m.undecided(h) {
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "ByTest", Message: "by a person",
		})
		request.ResourceVersion = "" // the hub may comment on it at the same moment
		require.NoError(m.t, h.Client.SubResource("approval").Update(m.t.Context(), &request))
	}
}

// accept waits for the ManagedCluster and says whether the hub accepts it, as a person does.
func (m *member) accept(h *hubSide, accepted bool) {
	m.t.Helper()
	m.eventually(func() bool { return m.cluster(h) != nil }, "the ManagedCluster")
	patch := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t,"leaseDurationSeconds":2}}`, accepted)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	require.NoError(m.t, h.Client.Patch(m.t.Context(), cluster, client.RawPatch(types.MergePatchType, patch)))
}

// admit does all that people do for a cluster that joins, and waits until it did.
func (m *member) admit(h *hubSide) {
	m.t.Helper()
	m.approve(h)
	m.accept(h, true)
	m.awaitJoined(h)
}

func (m *member) awaitJoined(h *hubSide) {
	m.t.Helper()
	m.awaitServing()
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		m.awaitCondition(h, kind)
	}
}

// awaitCondition waits until a condition of the ManagedCluster is true.
func (m *member) awaitCondition(h *hubSide, kind string) {
	m.t.Helper()
	m.eventually(func() bool {
		found := m.cluster(h)
		return found != nil && meta.IsStatusConditionTrue(found.Status.Conditions, kind)
	}, "condition %s of the ManagedCluster", kind)
}

func (m *member) eventually(done func() bool, message string, args ...any) {
	m.t.Helper()
	suite.Eventually(m.t, suite.True(fmt.Sprintf(message, args...), done, m.lastState))
}

// lastState holds what the agent says that it is doing, for the message of a failure.
func (m *member) lastState() string {
	if m.agent == nil {
		return "the agent does not run"
	}
	text, _ := m.state()
	return "the agent says " + text
}

// link is a way to a hub that can be cut and led elsewhere.
func link(t *testing.T, h *hubSide) *sandbox.Link {
	t.Helper()
	l, err := sandbox.NewLink(h.Host)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// choices is how often the agent chose what to do again.
func (m *member) choices() int { return m.agent.Log.Count("choosing again") }

// atRest waits until the log has not grown for a moment.
func (m *member) atRest() {
	m.t.Helper()
	suite.Quiet(m.t, time.Second, m.agent.Log.String)
}
