package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// programs are the three binaries of a control plane.
var programs = [...]string{"etcd", "kube-apiserver", "kube-controller-manager"}

// findAssets returns the directory with the programs, or an error that says how to get them.
func findAssets(dir string, managed bool) (string, error) {
	if dir == "" && managed {
		dir = os.Getenv("KUBE_ASSETS_MANAGED")
	}
	dir = cmp.Or(dir, os.Getenv("KUBE_ASSETS"))
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "kube")
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return "", fmt.Errorf("looking for the control plane programs in %s (run \"make kube\", "+
				"or set KUBE_ASSETS to a directory that has them): %w", dir, err)
		}
	}
	return dir, nil
}

// ModuleRoot returns the directory of Spokelet's go.mod, at or above the working directory.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module root: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/spokelet/spokelet\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New("finding the module root: no go.mod of Spokelet above " + dir)
		}
	}
}

// etcdURL is where an etcd serves a port.
func etcdURL(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// etcdArgs are the arguments of an etcd with its data in a directory of the control plane.
func (c *ControlPlane) etcdArgs(data string, client, peer int) []string {
	clientURL, peerURL := etcdURL(client), etcdURL(peer)
	return append([]string{
		"--name=sandbox",
		"--data-dir=" + c.path(data),
		"--listen-client-urls=" + clientURL,
		"--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=sandbox=" + peerURL,
		// The data is gone with the directory anyway, so nothing is worth a sync to disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}, c.opts.StoreArgs...)
}

func (c *ControlPlane) apiserverArgs(port, etcd int) []string {
	args := []string{
		"--etcd-servers=" + etcdURL(etcd),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + c.path("server.crt"),
		"--tls-private-key-file=" + c.path("server.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=" + c.Host,
		"--service-account-key-file=" + c.path("tokens.pub"),
		"--service-account-signing-key-file=" + c.path("tokens.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none",
		// Who measures may ask what it does.
		"--profiling=true",
	}
	if c.opts.Audit {
		args = append(args, "--audit-policy-file="+c.path("audit-policy.yaml"), "--audit-log-path="+c.AuditLog(),
			"--audit-log-mode=blocking", "--audit-log-maxsize="+strconv.Itoa(auditMegabytes))
	}
	if c.opts.FrontProxy {
		args = append(args, "--requestheader-client-ca-file="+c.path("ca.crt"), "--requestheader-allowed-names="+FrontProxy,
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-")
	}
	if len(c.opts.Admission) > 0 {
		args = append(args, "--enable-admission-plugins="+strings.Join(c.opts.Admission, ","))
	}
	return append(args, c.opts.APIServerArgs...)
}

func (c *ControlPlane) controllerArgs() []string {
	args := []string{
		"--kubeconfig=" + c.path("controller-manager.kubeconfig"),
		// It needs no port: that it works shows in what it does.
		"--secure-port=0",
		"--leader-elect=false",
		// Without credentials of their own, garbage collection and namespaces may not delete under RBAC.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.path("tokens.key"),
		"--root-ca-file=" + c.path("ca.crt"),
		"--cluster-signing-cert-file=" + c.path("ca.crt"),
		"--cluster-signing-key-file=" + c.path("ca.key"),
		"--kube-api-qps=300",
		"--kube-api-burst=600",
		"--profiling=false",
	}
	if c.opts.SigningDuration > 0 {
		args = append(args, "--cluster-signing-duration="+c.opts.SigningDuration.String())
	}
	return args
}

// auditMegabytes is the size at which the API server begins another audit log: never.
const auditMegabytes = 1 << 20

// auditPolicy logs one line per finished request, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// writeFiles writes the files of the processes beside the keys.
func (c *ControlPlane) writeFiles() error {
	controller, err := c.User("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig, err := c.Kubeconfig(controller)
	if err != nil {
		return err
	}
	policy := c.opts.AuditPolicy
	if policy == "" {
		policy = auditPolicy
	}
	return errors.Join(
		os.WriteFile(c.path("controller-manager.kubeconfig"), kubeconfig, 0o600),
		os.WriteFile(c.path("audit-policy.yaml"), []byte(policy), 0o600),
	)
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.Dir, name) }

// isPortTaken reports whether a start failed because another program took one of its ports.
func isPortTaken(err error) bool { return strings.Contains(err.Error(), "address already in use") }
