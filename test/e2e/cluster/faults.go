package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// signingFlag is the flag of kube-controller-manager with the longest lifetime of a certificate.
	signingFlag = "cluster-signing-duration"
	// staticPod is the file of its static pod on a node.
	staticPod = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
	// mark is on the rules by which a network is cut.
	mark = "spokelet-e2e-cut"
)

// Cut cuts the network between this cluster and another one, for the node and for all its pods: packets are dropped, as
// when a link fails. The function that it returns mends it.
func (c *Cluster) Cut(ctx context.Context, other *Cluster) (mend func(context.Context) error, err error) {
	node, err := other.node()
	if err != nil {
		return nil, err
	}
	address, _, err := node.IP()
	if err != nil {
		return nil, fmt.Errorf("finding the address of cluster %s: %w", other.Name, err)
	}
	rules := func(ctx context.Context, verb string) error {
		var errs []error
		for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
			for _, end := range []string{"--source", "--destination"} {
				errs = append(errs, c.onNode(ctx, "iptables", "--wait", verb, chain, end, address,
					"--match", "comment", "--comment", mark, "--jump", "DROP"))
			}
		}
		return errors.Join(errs...)
	}
	mend = func(ctx context.Context) error { return rules(ctx, "--delete") }
	if err := rules(ctx, "--insert"); err != nil {
		return nil, errors.Join(err, mend(ctx))
	}
	return mend, nil
}

// RestartNode restarts the container of the node, as a reboot of the machine, and waits until the cluster is ready.
func (c *Cluster) RestartNode(ctx context.Context) error {
	if err := docker(ctx, "restart", c.nodeName()); err != nil {
		return fmt.Errorf("restarting node %s: %w", c.nodeName(), err)
	}
	return c.WaitReady(ctx)
}

// SetSigningDuration changes the longest lifetime of a certificate that the cluster issues, which must have been
// created with one, and waits until that is in force.
func (c *Cluster) SetSigningDuration(ctx context.Context, lifetime time.Duration) error {
	flag := fmt.Sprintf("--%s=%s", signingFlag, lifetime)
	// The kubelet looks at every file of the folder, so nothing may be written there besides.
	script := fmt.Sprintf("sed 's/--%s=.*/%s/' %s >/tmp/changed && cp /tmp/changed %[3]s", signingFlag, flag, staticPod)
	if err := c.onNode(ctx, "sh", "-c", script); err != nil {
		return err
	}
	return Until(ctx, "kube-controller-manager to run with "+flag, func(ctx context.Context) error {
		var pod corev1.Pod
		key := client.ObjectKey{Namespace: "kube-system", Name: "kube-controller-manager-" + c.nodeName()}
		if err := c.Client.Get(ctx, key, &pod); err != nil {
			return err
		}
		if command := pod.Spec.Containers[0].Command; !slices.Contains(command, flag) {
			return fmt.Errorf("it runs with %s", strings.Join(command, " "))
		}
		if !IsReady(&pod) {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// IsReady reports whether the containers of a pod are ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
