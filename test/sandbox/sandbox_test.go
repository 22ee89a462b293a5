package sandbox_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// childRole tells the test binary to be a program that holds a sandbox and dies in the given way.
	childRole = "SPOKELET_SANDBOX_CHILD"
	patience  = 30 * time.Second
	tick      = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	switch way := os.Getenv(childRole); way {
	case "":
	case "interrupt":
		os.Exit(sandbox.Main(m, waitForInterrupt))
	default:
		beChild(way)
		return
	}
	os.Exit(m.Run())
}

// beChild starts a sandbox, says where it is, and then panics or waits to be killed.
func beChild(way string) {
	plane, err := sandbox.Start(context.Background(), sandbox.Options{Name: "child"})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	introduce(plane)
	if way == "panic" {
		go func() { panic("as the test wants") }()
	}
	select {}
}

// waitForInterrupt starts a sandbox for Main and is interrupted before it is done.
func waitForInterrupt(ctx context.Context) (stop func(), err error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "child"})
	if err != nil {
		return nil, err
	}
	introduce(plane)
	<-ctx.Done()
	return plane.Stop, context.Cause(ctx)
}

// introduce tells the parent what must be gone later.
func introduce(plane *sandbox.ControlPlane) {
	fmt.Println("dir", plane.Dir)
	fmt.Println("pids", strings.Trim(fmt.Sprint(plane.PIDs()), "[]"))
	fmt.Println("up")
}

func TestTwoControlPlanesStandSideBySide(t *testing.T) {
	t.Parallel()
	one, two := start(t, "one"), start(t, "two")
	assert.NotEqual(t, one.Host, two.Host)

	_, err := clientFor(t, one.Admin()).CoreV1().Namespaces().Create(t.Context(), namespace("only-here"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientFor(t, two.Admin()).CoreV1().Namespaces().Get(t.Context(), "only-here", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the other control plane must not have the namespace: %v", err)

	dir, pids := one.Dir, one.PIDs()
	one.Stop()
	assertNothingLeft(t, dir, pids)
}

func TestUsersHaveTheRightsThatRBACGivesThem(t *testing.T) {
	t.Parallel()
	plane := start(t, "rbac")
	require.NoError(t, plane.Apply(t.Context(), []byte(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: default}
- {kind: Group, name: readers, apiGroup: rbac.authorization.k8s.io}
`)))
	account, err := plane.ServiceAccount(t.Context(), "default", "reader")
	require.NoError(t, err)
	user, err := plane.User("somebody", "readers")
	require.NoError(t, err)
	stranger, err := plane.User("stranger")
	require.NoError(t, err)

	for name, cfg := range map[string]*rest.Config{"ServiceAccount": account, "user in the group": user} {
		// The API server learns of roles and bindings from its own watches.
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := clientFor(t, cfg).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(c, err, name)
		}, patience, 50*time.Millisecond)
		_, err = clientFor(t, cfg).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s must not list Secrets: %v", name, err)
	}
	_, err = clientFor(t, stranger).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "a stranger must not list ConfigMaps: %v", err)

	kubeconfig, err := plane.Kubeconfig(account)
	require.NoError(t, err)
	parsed, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	_, err = clientFor(t, parsed).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "the kubeconfig must carry the credential")
}

func TestControllersSignAndCollect(t *testing.T) {
	t.Parallel()
	plane := start(t, "controllers")
	clients := clientFor(t, plane.Admin())

	owner, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clients.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "dependent", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, clients.CoreV1().ConfigMaps("default").Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), "dependent", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, tick, "the garbage collector must delete what a deleted object owned")

	csr, err := clients.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request(t), metav1.CreateOptions{})
	require.NoError(t, err)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	_, err = clients.CertificatesV1().CertificateSigningRequests().
		UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		csr, err = clients.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0
	}, patience, tick, "an approved request must be signed")
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(plane.CA()))
	block, _ := pem.Decode(csr.Status.Certificate)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err, "the certificate must come from the sandbox's own authority")

	families, err := plane.Metrics(t.Context())
	require.NoError(t, err)
	assert.Contains(t, families, "apiserver_request_total")
}

func TestAControlPlaneGoesOnWithTheStoresOfAnother(t *testing.T) {
	for had, apart := range map[string]bool{"leases apart": true, "leases with the rest": false} {
		t.Run(had, func(t *testing.T) {
			kept := filepath.Join(t.TempDir(), "kept")
			former, err := sandbox.Start(t.Context(), sandbox.Options{Name: "former", LeasesApart: apart})
			require.NoError(t, err)
			defer former.Stop()
			_, err = clientFor(t, former.Admin()).CoreV1().Namespaces().
				Create(t.Context(), namespace("kept"), metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, former.Keep(t.Context(), kept))
			require.ErrorContains(t, former.Keep(t.Context(), kept), "name a new one")
			former.Stop()

			next, err := sandbox.Start(t.Context(), sandbox.Options{Name: "next", LeasesApart: true, Stores: kept})
			require.NoError(t, err)
			defer next.Stop()
			_, err = clientFor(t, next.Admin()).CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
			require.NoError(t, err)
		})
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := sandbox.Start(t.Context(), sandbox.Options{Assets: t.TempDir()})
	require.ErrorContains(t, err, "make kube")
	require.ErrorContains(t, err, "etcd")
}

func TestADirectoryWithSomethingInItIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	_, err := sandbox.Start(t.Context(), sandbox.Options{Dir: dir})
	require.ErrorContains(t, err, "precious")
	assert.FileExists(t, precious)
}

func TestStopRemovesTheGivenDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	plane, err := sandbox.Start(t.Context(), sandbox.Options{Name: "given", Dir: dir, Audit: true})
	require.NoError(t, err)
	t.Cleanup(plane.Stop)
	require.NoError(t, plane.Apply(t.Context(), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: one}
`)), "a CRD and an object of its kind must be applied in one go")
	log, err := os.ReadFile(plane.AuditLog())
	require.NoError(t, err)
	assert.Contains(t, string(log), "/apis/example.com/v1/things/one")
	plane.Stop()
	assertNothingLeft(t, dir, plane.PIDs())
}

func TestNothingOutlivesItsParent(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"panic", "kill -9", "interrupt"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), childRole+"="+way)
			pipe, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			buffer := make([]byte, 4096)
			for !strings.Contains(out.String(), "up\n") {
				n, err := pipe.Read(buffer)
				require.NoError(t, err, out.String())
				out.Write(buffer[:n])
			}
			switch way {
			case "kill -9":
				require.NoError(t, child.Process.Kill())
			case "interrupt":
				require.NoError(t, child.Process.Signal(os.Interrupt))
			}
			require.Error(t, child.Wait(), "the child must not end well")
			dir, pids := parseChild(t, out.String())
			assertNothingLeft(t, dir, pids)
		})
	}
}

func parseChild(t *testing.T, out string) (dir string, pids []int) {
	t.Helper()
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "dir":
			dir = fields[1]
		case "pids":
			for _, field := range fields[1:] {
				pid, err := strconv.Atoi(field)
				require.NoError(t, err)
				pids = append(pids, pid)
			}
		}
	}
	require.Len(t, pids, 3, out)
	return dir, pids
}

func assertNothingLeft(t *testing.T, dir string, pids []int) {
	t.Helper()
	require.True(t, filepath.IsAbs(dir))
	for _, pid := range pids {
		assert.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, patience, tick, "process %d is left", pid)
	}
	assert.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}, patience, tick, "directory %s is left", dir)
}

func start(t *testing.T, name string) *sandbox.ControlPlane {
	t.Helper()
	plane, err := sandbox.Start(t.Context(), sandbox.Options{Name: name})
	require.NoError(t, err)
	t.Cleanup(plane.Stop)
	return plane
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return clients
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func request(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "somebody"},
	}, key)
	require.NoError(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sandbox-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}
