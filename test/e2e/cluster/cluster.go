package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// createTimeout is how long a cluster may take until its node is ready and its DNS answers; two at the same time on two
// cores take 45 seconds.
const createTimeout = 6 * time.Minute

// Options are how a cluster is created.
type Options struct {
	// Name is the name of the cluster, with the Prefix.
	Name string
	// NodeImage is the image of the node; empty means the one that this version of kind is released with.
	NodeImage string
	// Dir is where the kubeconfig file goes.
	Dir string
	// SigningDuration is the longest lifetime of a certificate that the cluster issues; zero means a year.
	SigningDuration time.Duration
	// SecretSync is how long the kubelet may take to bring a changed Secret into a pod; zero means a minute or two.
	SecretSync time.Duration
	// Log receives what kind reports.
	Log io.Writer
}

// Cluster is a kind cluster of one node.
type Cluster struct {
	// Name is the name of the cluster.
	Name string
	// Kubeconfig is the path of the kubeconfig of its administrator, with an address that this machine reaches.
	Kubeconfig string
	// Admin has the credentials of its administrator.
	Admin *rest.Config
	// Client reads and writes as its administrator, without a cache.
	Client client.Client
	// Kube is Client for what only client-go has, such as logs.
	Kube kubernetes.Interface

	provider *kind.Provider
	options  Options
}

// New returns a cluster that does not exist yet, so that its owner can delete it whatever becomes of its creation.
func New(options Options) *Cluster {
	return &Cluster{
		Name: options.Name, Kubeconfig: filepath.Join(options.Dir, options.Name+".kubeconfig"), options: options,
		provider: kind.NewProvider(kind.ProviderWithDocker(), kind.ProviderWithLogger(logger{out: options.Log})),
	}
}

// Create creates the cluster. It returns when the node is ready and DNS answers. When ctx ends before, the cluster is
// deleted.
func (c *Cluster) Create(ctx context.Context) error {
	created := make(chan error, 1)
	go func() { // kind knows no contexts.
		created <- c.provider.Create(c.Name,
			kind.CreateWithV1Alpha4Config(c.configuration()), kind.CreateWithNodeImage(c.options.NodeImage),
			kind.CreateWithKubeconfigPath(c.Kubeconfig), kind.CreateWithRetain(true),
			kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false))
	}()
	select {
	case err := <-created:
		if err != nil {
			return fmt.Errorf("creating cluster %s: %w", c.Name, err)
		}
	case <-ctx.Done():
		// Without its container, kind gives up; what it made after that goes with the second deletion.
		err := c.Delete()
		<-created
		return errors.Join(context.Cause(ctx), err, c.Delete())
	}
	if err := c.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	return c.WaitReady(ctx)
}

// configuration is the cluster as kind creates it.
func (c *Cluster) configuration() *v1alpha4.Cluster {
	// A kubelet of this version refuses to run on cgroup v1 otherwise; with cgroup v2 the setting changes nothing.
	kubelet := "kind: KubeletConfiguration\nfailCgroupV1: false\n"
	if c.options.SecretSync > 0 {
		kubelet += fmt.Sprintf("syncFrequency: %s\n", c.options.SecretSync)
	}
	patches := []string{kubelet}
	if c.options.SigningDuration > 0 {
		patches = append(patches, fmt.Sprintf("kind: ClusterConfiguration\ncontrollerManager:\n  extraArgs:\n    %s: %s\n",
			signingFlag, c.options.SigningDuration))
	}
	return &v1alpha4.Cluster{
		Nodes:                []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}},
		KubeadmConfigPatches: patches,
	}
}

// connect builds the clients.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	config.QPS, config.Burst = -1, -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install,
		addonv1alpha1.Install, addonv1beta1.Install,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	c.Admin = config
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("building the client of cluster %s: %w", c.Name, err)
	}
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("building the client of cluster %s: %w", c.Name, err)
	}
	return nil
}

// WaitReady waits until the node is ready and DNS answers.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return Until(ctx, "cluster "+c.Name+" to be ready", func(ctx context.Context) error {
		var node corev1.Node
		if err := c.Client.Get(ctx, client.ObjectKey{Name: c.nodeName()}, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return fmt.Errorf("its node is not ready: %s", condition.Message)
			}
		}
		var dns appsv1.Deployment
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, &dns); err != nil {
			return err
		}
		if dns.Status.AvailableReplicas == 0 {
			return errors.New("no pod of CoreDNS is available")
		}
		return nil
	})
}

// Delete deletes the cluster with its kubeconfig file, also one that was never created.
func (c *Cluster) Delete() error {
	if err := c.provider.Delete(c.Name, c.Kubeconfig); err != nil {
		return fmt.Errorf("deleting cluster %s: %w", c.Name, err)
	}
	// kind leaves the file behind, without its entry.
	for _, file := range []string{c.Kubeconfig, c.Kubeconfig + ".lock"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("deleting a kubeconfig: %w", err)
		}
	}
	return nil
}

// ExportLogs writes the logs of the node and of all its pods into a folder below dir.
func (c *Cluster) ExportLogs(dir string) error {
	if err := c.provider.CollectLogs(c.Name, filepath.Join(dir, c.Name)); err != nil {
		return fmt.Errorf("exporting the logs of cluster %s: %w", c.Name, err)
	}
	return nil
}

// InternalKubeconfig returns the kubeconfig of its administrator with an address that other clusters of the run reach.
func (c *Cluster) InternalKubeconfig() ([]byte, error) {
	content, err := c.provider.KubeConfig(c.Name, true)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	return []byte(content), nil
}

// LoadImage loads the images of a tar file, as "docker save" writes it, into the node.
func (c *Cluster) LoadImage(path string) error {
	node, err := c.node()
	if err != nil {
		return err
	}
	archive, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening an image: %w", err)
	}
	defer archive.Close()
	if err := nodeutils.LoadImageArchive(node, archive); err != nil {
		return fmt.Errorf("loading %s into cluster %s: %w", path, c.Name, err)
	}
	return nil
}

// Address is the address of the node for pods of all clusters of the run, such as for a Service of type NodePort.
func (c *Cluster) Address() string { return c.nodeName() }

// nodeName is the name of the node, which is also its address for other clusters of the run.
func (c *Cluster) nodeName() string { return c.Name + "-control-plane" }

func (c *Cluster) node() (nodes.Node, error) {
	all, err := c.provider.ListInternalNodes(c.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for the node of cluster %s: %w", c.Name, err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("cluster %s has %d nodes and not one", c.Name, len(all))
	}
	return all[0], nil
}

// onNode runs a command in the container of the node.
func (c *Cluster) onNode(ctx context.Context, command string, args ...string) error {
	node, err := c.node()
	if err != nil {
		return err
	}
	if output, err := kindexec.CombinedOutputLines(node.CommandContext(ctx, command, args...)); err != nil {
		return fmt.Errorf("running %s on node %s: %w: %s", command, c.nodeName(), err, output)
	}
	return nil
}
