package klusterlet_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// klusterlet is one Klusterlet with its agents.
type klusterlet struct {
	t *testing.T
	// name is that of the Klusterlet, the cluster and, with a suffix, the namespace.
	name, namespace, dir  string
	registration, working string
	// hub is the way to the hub that its bootstrap kubeconfig names.
	hub *sandbox.Link
}

// newKlusterlet does what the operator does before the agents start: the rights, the bootstrap Secret, and an empty
// Secret for the credential. singleton makes one ServiceAccount of the two.
func newKlusterlet(t *testing.T, prefix string, singleton bool) *klusterlet {
	t.Helper()
	t.Parallel()
	name := suite.UniqueName(prefix)
	k := &klusterlet{
		t: t, name: name, namespace: name + "-agent", dir: t.TempDir(),
		registration: name + "-registration-sa", working: name + "-work-sa",
	}
	if singleton {
		k.registration = k.working
	}
	var err error
	k.hub, err = sandbox.NewLink(plane.Host)
	require.NoError(t, err)
	t.Cleanup(k.hub.Close)
	require.NoError(t, plane.Apply(t.Context(), []byte(strings.NewReplacer(
		"NAMESPACE", k.namespace, "KLUSTERLET", name, "REGISTRATION", k.registration, "WORK", k.working,
	).Replace(rbac))))
	for secret, data := range map[string]map[string][]byte{
		"bootstrap-hub-kubeconfig": {"kubeconfig": k.bootstrap()},
		"hub-kubeconfig-secret":    {"placeholder": []byte("placeholder")},
	} {
		require.NoError(t, plane.Client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: secret}, Data: data,
		}))
	}
	return k
}

// bootstrap is the bootstrap kubeconfig.
func (k *klusterlet) bootstrap() []byte {
	k.t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: k.hub.Host, CertificateAuthorityData: plane.CA()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: bootstrap.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"bootstrap": {Cluster: "hub", AuthInfo: "bootstrap"}},
		CurrentContext: "bootstrap",
	})
	require.NoError(k.t, err)
	return data
}

// pod is one pod of a Deployment of a Klusterlet.
type pod struct {
	*klusterlet
	name    string
	process *sandbox.Process
	port    int
	dir     string
	stop    func()
}

// The arguments of the containers, as OCM's operator renders them for three replicas. A replica alone gets
// --disable-leader-election, too.
func (k *klusterlet) registrationArgs() []string {
	return []string{
		"/registration", "agent", "--spoke-cluster-name=" + k.name, "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
		"--feature-gates=AddonManagement=true", "--client-cert-expiration-seconds=3600", "--kube-api-qps=50",
		"--kube-api-burst=100", "--addon-kubeclient-registration-auth=csr", "--tls-min-version=VersionTLS12",
	}
}

func (k *klusterlet) workArgs() []string {
	return []string{
		"/work", "agent", "--spoke-cluster-name=" + k.name, "--workload-source-driver=kube",
		"--workload-source-config=/spoke/hub-kubeconfig/kubeconfig", "--agent-id=5f4dcc3b",
		"--feature-gates=ExecutorValidatingCaches=true", "--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig",
		"--status-sync-interval=60s", "--kube-api-qps=50", "--kube-api-burst=100", "--hub-kube-api-qps=50",
		"--hub-kube-api-burst=100", "--appliedmanifestwork-eviction-grace-period=60m0s", "--tls-min-version=VersionTLS12",
	}
}

func (k *klusterlet) singletonArgs() []string {
	return append([]string{
		"/registration-operator", "agent", "--spoke-cluster-name=" + k.name,
		"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
	}, k.workArgs()[3:]...)
}

// run starts a pod with the arguments of its container, and does for it what a kubelet does: its Secrets are mounted
// and kept up to date, it has a token of its ServiceAccount, and it is probed over HTTPS. The test fails when a probe
// does once the pod has begun.
func (k *klusterlet) run(account string, args []string) *pod {
	k.t.Helper()
	name := strings.Trim(args[0], "/") + "-" + utilrand.String(5)
	p := &pod{klusterlet: k, name: name, port: suite.FreePort(k.t), dir: filepath.Join(k.dir, name)}
	require.NoError(k.t, os.MkdirAll(p.dir, 0o700))
	kubeconfig := plane.WriteKubeconfig(k.t, plane.AccountConfig(k.t, k.namespace, account), p.dir, "own")
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.t.Context()))
	var all sync.WaitGroup
	mounts := map[string]string{"bootstrap": "bootstrap-hub-kubeconfig"}
	if account == k.working && args[0] == "/work" {
		mounts = map[string]string{"hub-kubeconfig": "hub-kubeconfig-secret"}
	}
	for dir, secret := range mounts {
		k.mount(ctx, filepath.Join(p.dir, dir), secret)
		all.Go(func() {
			for ctx.Err() == nil {
				k.mount(ctx, filepath.Join(p.dir, dir), secret)
				pause(ctx)
			}
		})
	}
	given := []string{}
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			arg = strings.ReplaceAll(arg, "/spoke/", p.dir+"/")
		}
		given = append(given, arg)
	}
	// What a pod has from where it runs; the directory of the credential is the default, which starts with /spoke, too.
	given = append(given, "--kubeconfig="+kubeconfig, "--namespace="+k.namespace, "--health-port="+strconv.Itoa(p.port),
		"--hub-kubeconfig-dir="+filepath.Join(p.dir, "hub-kubeconfig"))
	p.process = &sandbox.Process{
		Name: name, Path: program, Args: given, Env: []string{"POD_NAME=" + name}, LogPath: filepath.Join(p.dir, "log"),
	}
	require.NoError(k.t, p.process.Start())
	all.Go(func() { p.keepProbing(ctx) })
	var once sync.Once
	p.stop = func() {
		once.Do(func() {
			cancel()
			all.Wait()
			p.process.Stop(30 * time.Second)
		})
	}
	k.t.Cleanup(func() {
		p.stop()
		if k.t.Failed() || os.Getenv("KLUSTERLET_LOG") != "" {
			k.t.Logf("log of %s:\n%s", name, p.process.Log())
		}
	})
	return p
}

// pause waits until the next look.
func pause(ctx context.Context) {
	timer := time.NewTimer(25 * suite.Tick)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// mount writes a Secret into a directory as a kubelet does: all files change at once.
func (k *klusterlet) mount(ctx context.Context, dir, name string) {
	var secret corev1.Secret
	if plane.Client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, &secret) != nil {
		return
	}
	version := "..v" + secret.ResourceVersion
	if _, err := os.Stat(filepath.Join(dir, version)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	must := func(err error) { assert.NoError(k.t, err) }
	must(os.MkdirAll(filepath.Join(dir, version), 0o700))
	for key, data := range secret.Data {
		must(os.WriteFile(filepath.Join(dir, version, key), data, 0o600))
	}
	must(os.Symlink(version, filepath.Join(dir, "..new")))
	must(os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	for key := range secret.Data {
		if err := os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key)); !errors.Is(err, fs.ErrExist) {
			must(err)
		}
	}
}

// get asks the pod over HTTPS without looking at its certificate, as a kubelet does.
func (p *pod) get(ctx context.Context, path string) (int, string, error) {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as a kubelet
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(p.port)+path, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(body)), err
}

// keepProbing probes the pod, for liveness and readiness alike, until ctx ends.
func (p *pod) keepProbing(ctx context.Context) {
	began := false
	for ctx.Err() == nil {
		code, body, err := p.get(ctx, "/healthz")
		began = began || err == nil
		if began && ctx.Err() == nil && (err != nil || code != http.StatusOK) {
			assert.Fail(p.t, "a probe failed", "%s: %d %s %v", p.name, code, body, err)
		}
		pause(ctx)
	}
}

// readiness is what /readyz answers; code 0 while nobody does.
func (p *pod) readiness() (code int, body string) {
	p.t.Helper()
	code, body, err := p.get(p.t.Context(), "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	return code, body
}

func (p *pod) awaitReadiness(text string) {
	p.t.Helper()
	suite.Eventually(p.t, func() error {
		if _, body := p.readiness(); !strings.Contains(body, text) {
			return fmt.Errorf("readiness of %s must say %q and says %q", p.name, text, body)
		}
		return nil
	})
}

func (k *klusterlet) eventually(done func() bool, message string, args ...any) {
	k.t.Helper()
	suite.Eventually(k.t, suite.True(fmt.Sprintf(message, args...), done))
}
