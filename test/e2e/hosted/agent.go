package hosted

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// works applies a work from the hosting cluster.
func (p *play) works(ctx context.Context, s *suite.Session) error {
	const name = "from-hosting"
	if err := s.ApplyWork(ctx, managedName, name); err != nil {
		return err
	}
	if err := suite.Gone(ctx, s.Fleet.Cluster(suite.Hosting), suite.WorkObject(name)); err != nil {
		return fmt.Errorf("the hosting cluster has what is meant for the managed cluster: %w", err)
	}
	took, err := s.Fleet.RepairWork(ctx, name)
	s.Note("repaired %.1f s after it was deleted", took.Seconds())
	return err
}

// agentPod returns the pod of the agent of the managed cluster, which must be ready and never restarted.
func agentPod(ctx context.Context, f *suite.Fleet) (*corev1.Pod, error) {
	pod, err := suite.Pod(ctx, f.Cluster(suite.Hosting), managedName, suite.Agent)
	switch {
	case err != nil:
		return nil, err
	case !cluster.IsReady(pod):
		return nil, fmt.Errorf("pod %s is not ready", pod.Name)
	case suite.Restarts(pod) > 0:
		return nil, fmt.Errorf("pod %s was restarted %d times", pod.Name, suite.Restarts(pod))
	}
	return pod, nil
}

// waitLog waits until the log of the agent of the managed cluster contains a text.
func waitLog(ctx context.Context, f *suite.Fleet, text string) error {
	pods := f.Cluster(suite.Hosting).Kube.CoreV1().Pods(managedName)
	return cluster.Until(ctx, fmt.Sprintf("the agent to log %q", text), func(ctx context.Context) error {
		pod, err := agentPod(ctx, f)
		if err != nil {
			return err
		}
		log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return err
		}
		if !strings.Contains(string(log), text) {
			return fmt.Errorf("it did not")
		}
		return nil
	})
}

// replaceKubeconfig gives the agent another token of the managed cluster.
func (p *play) replaceKubeconfig(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	before, err := agentPod(ctx, f)
	if err != nil {
		return err
	}
	kubeconfig, err := suite.AccountKubeconfig(ctx, f.Managed(), names.NamespaceAgent, names.ServiceAccountAgent)
	if err != nil {
		return err
	}
	if err := suite.PutKubeconfig(ctx, f.Cluster(suite.Hosting), managedName, managedSecret, kubeconfig); err != nil {
		return err
	}
	if err := waitLog(ctx, f, "the kubeconfig of the managed cluster changed"); err != nil {
		return err
	}
	if err := s.ApplyWork(ctx, managedName, "after-kubeconfig"); err != nil {
		return err
	}
	after, err := agentPod(ctx, f)
	if err == nil && after.UID != before.UID {
		err = fmt.Errorf("pod %s took the place of %s", after.Name, before.Name)
	}
	return err
}

// cutManaged cuts the network between hosting and managed cluster.
func (p *play) cutManaged(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	hosting := f.Cluster(suite.Hosting)
	mend, err := hosting.Cut(ctx, f.Managed())
	if err != nil {
		return err
	}
	mended := false
	s.Cleanup("mend the network", func(ctx context.Context) error {
		if mended {
			return nil
		}
		return mend(ctx)
	})
	var message string
	err = cluster.Until(ctx, "the hub to report the managed cluster as unavailable", func(ctx context.Context) error {
		var found clusterv1.ManagedCluster
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Name: managedName}, &found); err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "The kube-apiserver is not ok") {
			return fmt.Errorf("its condition is %v", c)
		}
		message = c.Message
		return nil
	})
	if err != nil {
		return err
	}
	s.Note("the hub says: %s", message)
	if err := waitLog(ctx, f, "the managed cluster cannot be used"); err != nil {
		return err
	}
	if _, err := agentPod(ctx, f); err != nil {
		return err
	}
	if err := s.CreateWork(ctx, managedName, "meanwhile"); err != nil {
		return err
	}
	mended = true
	if err := mend(ctx); err != nil {
		return err
	}
	if err := f.WaitClusterAvailable(ctx, managedName); err != nil {
		return err
	}
	if err := f.WaitApplied(ctx, managedName, "meanwhile"); err != nil {
		return err
	}
	_, err = agentPod(ctx, f)
	return err
}
