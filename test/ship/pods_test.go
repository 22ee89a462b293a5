package ship_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// node stands for the nodes of a control plane that has none: it runs the program of each of our pods as a process,
// with the arguments, variables, ServiceAccount and Secrets of the pod, and reports the pod as ready when its probe
// does.
type node struct {
	t     *testing.T
	plane *suite.Plane
	// programs is the folder with the programs of the images.
	programs, dir string
	// service is the address of the webhook of the hub manager: a Service cannot be reached without nodes.
	service *service
	running map[types.UID]*process
}

// process is the program of a pod.
type process struct {
	key    client.ObjectKey
	probe  string
	ready  bool
	ended  chan error
	cmd    *exec.Cmd
	output string
}

// startNode runs pods until the test ends.
func startNode(t *testing.T, plane *suite.Plane, programs string) {
	t.Helper()
	n := &node{t: t, plane: plane, programs: programs, dir: t.TempDir(), running: map[types.UID]*process{}}
	n.service = startService(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() { n.run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
		for uid, p := range n.running {
			n.stop(uid, p)
		}
	})
}

// run looks at all pods again and again, as a kubelet does.
func (n *node) run(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := n.look(ctx); err != nil && ctx.Err() == nil {
				n.t.Logf("running the pods of %s: %v", n.plane.Name, err)
			}
		}
	}
}

func (n *node) look(ctx context.Context) error {
	var pods corev1.PodList
	err := n.plane.Client.List(ctx, &pods, client.HasLabels{"app"})
	if err != nil {
		return err
	}
	wanted := map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		wanted[pod.UID] = true
		if n.running[pod.UID] == nil {
			if err := n.start(ctx, pod); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
			continue
		}
		if err := n.probe(ctx, pod, n.running[pod.UID]); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	for uid, p := range n.running {
		if !wanted[uid] {
			n.stop(uid, p)
		}
	}
	return nil
}

// start starts the program of a pod, or returns nil where something that it needs is missing yet.
func (n *node) start(ctx context.Context, pod *corev1.Pod) error {
	dir := filepath.Join(n.dir, pod.Name)
	replace, complete, err := n.mount(ctx, pod, dir)
	if err != nil || !complete {
		return err
	}
	container := pod.Spec.Containers[0]
	env := []string{}
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}
			value = fields[from.FieldRef.FieldPath]
		}
		env = append(env, variable.Name+"="+value)
		replace = append(replace, "$("+variable.Name+")", value)
	}
	ports, err := sandbox.FreePorts(2)
	if err != nil {
		return err
	}
	kubeconfig, err := n.kubeconfig(ctx, pod, dir)
	if err != nil {
		return err
	}
	var args []string
	for _, arg := range container.Args {
		if !strings.HasPrefix(arg, "--webhook-service=") {
			args = append(args, strings.NewReplacer(replace...).Replace(arg))
		}
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	args = append(args, "--kubeconfig="+kubeconfig, "--health-probe-bind-address="+health)
	program := "spokelet"
	if pod.Labels["app"] == "spokelet-hub" {
		program = "spokelet-hub"
		args = append(args, "--webhook-bind-address=127.0.0.1", fmt.Sprintf("--webhook-port=%d", ports[1]),
			"--webhook-url=https://"+n.service.address+"/convert")
		n.service.leadTo(fmt.Sprintf("127.0.0.1:%d", ports[1]))
	}
	p := &process{
		key: client.ObjectKeyFromObject(pod), probe: "http://" + health + "/readyz", ended: make(chan error, 1),
		output: filepath.Join(dir, "log"),
	}
	log, err := os.Create(p.output)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(filepath.Join(n.programs, program), args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	n.running[pod.UID] = p
	return nil
}

// mount writes the volumes of a pod and returns the folder of each in the place of its path, in pairs. It is not
// complete while a Secret is missing.
func (n *node) mount(ctx context.Context, pod *corev1.Pod, dir string) (replace []string, complete bool, err error) {
	for _, mounted := range pod.Spec.Containers[0].VolumeMounts {
		path := filepath.Join(dir, mounted.Name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, false, err
		}
		replace = append(replace, mounted.MountPath, path)
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mounted.Name || volume.Secret == nil || volume.Secret.Optional != nil && *volume.Secret.Optional {
				continue
			}
			var secret corev1.Secret
			key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.Secret.SecretName}
			if err := n.plane.Client.Get(ctx, key, &secret); err != nil {
				return nil, false, client.IgnoreNotFound(err)
			}
			for name, content := range secret.Data {
				if err := os.WriteFile(filepath.Join(path, name), content, 0o600); err != nil {
					return nil, false, err
				}
			}
		}
	}
	return replace, true, nil
}

// kubeconfig writes the kubeconfig of the ServiceAccount of a pod.
func (n *node) kubeconfig(ctx context.Context, pod *corev1.Pod, dir string) (string, error) {
	account, err := n.plane.ServiceAccount(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return "", err
	}
	content, err := n.plane.Kubeconfig(account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "own.kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}

// probe asks the program whether it is ready, and reports that in the status of the pod.
func (n *node) probe(ctx context.Context, pod *corev1.Pod, p *process) error {
	select {
	case err := <-p.ended:
		p.ended <- err
		log, _ := os.ReadFile(p.output)
		n.t.Errorf("the program of pod %s ended: %v\n%s", pod.Name, err, log)
		return nil
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.probe, nil)
	if err != nil {
		return err
	}
	ready := corev1.ConditionFalse
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			ready = corev1.ConditionTrue
		}
	}
	if p.ready == (ready == corev1.ConditionTrue) {
		return nil
	}
	p.ready = ready == corev1.ConditionTrue
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now(),
	}}
	return client.IgnoreNotFound(n.plane.Client.Status().Patch(ctx, pod, client.MergeFrom(before)))
}

// stop ends the program of a pod that was deleted.
func (n *node) stop(uid types.UID, p *process) {
	delete(n.running, uid)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		n.t.Errorf("the program of pod %s did not end", p.key)
	}
	if n.t.Failed() {
		log, _ := os.ReadFile(p.output)
		n.t.Logf("the log of pod %s:\n%s", p.key, log)
	}
}

// service forwards connections to the program that started last.
type service struct {
	address string
	mu      sync.Mutex
	target  string
}

func startService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{address: listener.Addr().String()}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(from)
		}
	}()
	return s
}

func (s *service) leadTo(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = address
}

func (s *service) forward(from net.Conn) {
	defer from.Close()
	s.mu.Lock()
	target := s.target
	s.mu.Unlock()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}

// writeKubeconfig writes a kubeconfig with one context for each control plane, and returns its path.
func writeKubeconfig(t *testing.T, planes ...*suite.Plane) string {
	t.Helper()
	all, err := clientcmd.Load(nil)
	require.NoError(t, err)
	for _, plane := range planes {
		content, err := plane.Kubeconfig(rest.CopyConfig(plane.Admin()))
		require.NoError(t, err)
		one, err := clientcmd.Load(content)
		require.NoError(t, err)
		context := one.Contexts[one.CurrentContext]
		all.Clusters[plane.Name], all.AuthInfos[plane.Name] = one.Clusters[context.Cluster], one.AuthInfos[context.AuthInfo]
		context.Cluster, context.AuthInfo = plane.Name, plane.Name
		all.Contexts[plane.Name] = context
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*all, path))
	return path
}
