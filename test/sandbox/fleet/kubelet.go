package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/test/sandbox"
)

// RunDeployment does for a Deployment what a kubelet would do for its pod: it starts program with the arguments and
// the environment of the Deployment's first container, writes the files of its Secret volumes where the container
// expects them (below a directory of its own, to which the paths are rewritten), and gives it a token of its
// ServiceAccount in the kubeconfig that the flag kubeconfigFlag names. It returns an error that wraps ErrNotYet while
// the Deployment or one of its Secrets is missing, as a kubelet would wait. Files are written once: a demo ends long
// before a certificate is rotated.
func (f *Fleet) RunDeployment(
	ctx context.Context, cluster *Cluster, deployment types.NamespacedName, program, kubeconfigFlag string,
) (*sandbox.Process, error) {
	var found appsv1.Deployment
	if err := cluster.Client.Get(ctx, deployment, &found); err != nil {
		return nil, NotYet("reading the Deployment: %w", err)
	}
	pod := found.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return nil, fmt.Errorf("the Deployment %s has no container", deployment)
	}
	dir := filepath.Join(f.dir, cluster.Name+"-pods", deployment.Name)
	volumes, err := cluster.writeVolumes(ctx, pod, deployment.Namespace, dir)
	if err != nil {
		return nil, err
	}
	container := pod.Containers[0]
	var rewrite []string
	for _, mount := range container.VolumeMounts {
		if path, ok := volumes[mount.Name]; ok {
			rewrite = append(rewrite, mount.MountPath, path)
		}
	}
	paths := strings.NewReplacer(rewrite...)
	account := pod.ServiceAccountName
	if account == "" {
		account = "default"
	}
	identity, err := cluster.ControlPlane.ServiceAccount(ctx, deployment.Namespace, account)
	if err != nil {
		return nil, NotYet("getting a token of ServiceAccount %s: %w", account, err)
	}
	kubeconfig, err := f.Kubeconfig(cluster.ControlPlane, identity, cluster.Name+"-"+deployment.Name)
	if err != nil {
		return nil, err
	}
	args := []string{"--" + kubeconfigFlag + "=" + kubeconfig}
	for _, arg := range container.Args {
		if strings.HasPrefix(arg, "-") {
			args = append(args, paths.Replace(arg))
		}
	}
	process := f.process(deployment.Name+" on "+cluster.Name, filepath.Join(f.binaries, program), args...)
	for _, env := range container.Env {
		process.Env = append(process.Env, env.Name+"="+paths.Replace(env.Value))
	}
	return process, process.Start()
}

// writeVolumes writes the Secret volumes of a pod below dir and returns the directory of each by volume name.
func (c *Cluster) writeVolumes(
	ctx context.Context, pod corev1.PodSpec, namespace, dir string,
) (map[string]string, error) {
	volumes := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: namespace, Name: volume.Secret.SecretName}
		if err := c.Client.Get(ctx, key, &secret); err != nil {
			return nil, NotYet("reading the Secret of volume %s: %w", volume.Name, err)
		}
		path := filepath.Join(dir, volume.Name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("making volume %s: %w", volume.Name, err)
		}
		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(path, name), data, 0o600); err != nil {
				return nil, fmt.Errorf("writing volume %s: %w", volume.Name, err)
			}
		}
		volumes[volume.Name] = path
	}
	return volumes, nil
}
