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
	"slices"
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

	rendered "github.com/spokelet/spokelet/test/klusterlet"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// klusterlet is one Klusterlet with its agents.
type klusterlet struct {
	t *testing.T
	// name is that of the Klusterlet, the cluster and, with a suffix, the namespace.
	name, namespace, dir string
	// spec holds what the operator renders for it.
	spec rendered.Klusterlet
	// hub is the way to the hub that its bootstrap kubeconfig names.
	hub *sandbox.Link
	// spoke is the managed cluster, there the namespace on it where its add-ons and works are.
	spoke *suite.Plane
	there string
}

// newKlusterlet does what the operator does before the agents start: the rights, the bootstrap Secret, and an empty
// Secret for the credential. singleton makes one ServiceAccount of the two.
func newKlusterlet(t *testing.T, prefix string, singleton bool) *klusterlet {
	t.Helper()
	t.Parallel()
	return prepare(t, prefix, plane, rendered.Klusterlet{Singleton: singleton})
}

// prepare does that for a Klusterlet in any mode, whose managed cluster is spoke.
func prepare(t *testing.T, prefix string, spoke *suite.Plane, spec rendered.Klusterlet) *klusterlet {
	t.Helper()
	name := suite.UniqueName(prefix)
	spec.Name, spec.Cluster, spec.Namespace, spec.ManagedNamespace = name, name, name+"-agent", name+"-managed"
	spec.UID, spec.Image, spec.Replicas = "5f4dcc3b-"+name, "ours", 3
	k := &klusterlet{
		t: t, name: name, namespace: spec.Namespace, dir: t.TempDir(), spec: spec, spoke: spoke, there: spec.Namespace,
	}
	if spec.Hosted {
		k.there = spec.ManagedNamespace
	}
	management, err := spec.Management()
	require.NoError(t, err)
	managed, err := spec.Managed()
	require.NoError(t, err)
	k.hub, err = sandbox.NewLink(plane.Host)
	require.NoError(t, err)
	t.Cleanup(k.hub.Close)
	require.NoError(t, plane.Apply(t.Context(), management))
	require.NoError(t, spoke.Apply(t.Context(), managed))
	for secret, data := range map[string]map[string][]byte{
		rendered.SecretBootstrap: {"kubeconfig": k.bootstrap()},
		rendered.SecretHub:       {"placeholder": []byte("placeholder")},
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

// container is the container of a Deployment of the Klusterlet.
type container struct {
	corev1.Container
	account string
	// secrets are the Secrets that are mounted, by the directory below /spoke.
	secrets map[string]string
}

// with returns the container with further arguments.
func (c container) with(args ...string) container {
	c.Args = append(slices.Clone(c.Args), args...)
	return c
}

// registration, works and both are the containers as the operator renders them for three replicas. A replica alone gets
// --disable-leader-election, too.
func (k *klusterlet) registration() container { return k.container(false, 0) }
func (k *klusterlet) works() container        { return k.container(false, 1) }
func (k *klusterlet) both() container         { return k.container(true, 0) }

// container renders the nth Deployment. One account does everything where the Klusterlet is a singleton.
func (k *klusterlet) container(singleton bool, n int) container {
	k.t.Helper()
	spec := k.spec
	spec.Singleton = singleton
	deployments, err := spec.Deployments()
	require.NoError(k.t, err)
	pod := deployments[n].Spec.Template.Spec
	require.Len(k.t, pod.Containers, 1)
	c := container{Container: pod.Containers[0], account: pod.ServiceAccountName, secrets: map[string]string{}}
	if k.spec.Singleton {
		c.account = k.spec.WorkAccount()
	}
	for _, mount := range c.VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name && volume.Secret != nil {
				c.secrets[strings.TrimPrefix(mount.MountPath, "/spoke/")] = volume.Secret.SecretName
			}
		}
	}
	return c
}

// run starts a pod with the arguments of its container, and does for it what a kubelet does: its Secrets are mounted
// and kept up to date, it has a token of its ServiceAccount, and it is probed as the Deployment says. The test fails
// when a probe does once the pod has begun.
func (k *klusterlet) run(c container) *pod {
	k.t.Helper()
	name := strings.Trim(c.Args[0], "/") + "-" + utilrand.String(5)
	p := &pod{klusterlet: k, name: name, port: suite.FreePort(k.t), dir: filepath.Join(k.dir, name)}
	require.NoError(k.t, os.MkdirAll(p.dir, 0o700))
	kubeconfig := plane.WriteKubeconfig(k.t, plane.AccountConfig(k.t, k.namespace, c.account), p.dir, "own")
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.t.Context()))
	var all sync.WaitGroup
	for dir, secret := range c.secrets {
		k.mount(ctx, filepath.Join(p.dir, dir), secret)
		all.Go(func() {
			for ctx.Err() == nil {
				k.mount(ctx, filepath.Join(p.dir, dir), secret)
				pause(ctx)
			}
		})
	}
	given := []string{}
	for _, arg := range c.Args {
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
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		require.Equal(k.t, corev1.URISchemeHTTPS, probe.HTTPGet.Scheme)
		all.Go(func() { p.keepProbing(ctx, probe.HTTPGet.Path) })
	}
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

// keepProbing probes the pod until ctx ends.
func (p *pod) keepProbing(ctx context.Context, path string) {
	began := false
	for ctx.Err() == nil {
		code, body, err := p.get(ctx, path)
		began = began || err == nil
		if began && ctx.Err() == nil && (err != nil || code != http.StatusOK) {
			assert.Fail(p.t, "a probe failed", "%s: %d %s %v", p.name, code, body, err)
		}
		pause(ctx)
	}
}

// readiness holds what /readyz answers; code 0 while nobody does.
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
