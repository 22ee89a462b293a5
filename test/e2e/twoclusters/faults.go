package twoclusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// repairPause is the time between two changes that the agent has to repair: an object that is changed again and again
// is repaired ten times at once, and then every 15 seconds. repairLimit is how long a repair may take on a busy
// machine.
const repairPause, repairLimit = 20 * time.Second, 10 * time.Second

// leaseSeconds is how often the agent renews its lease on the hub while the hub is taken away, so that the hub notices
// within an outage: it waits for five times as long.
const leaseSeconds = 10

// deletePods deletes the pods of all three programs.
func (p *play) deletePods(ctx context.Context, s *suite.Session) error {
	requests, err := s.Fleet.Requests(ctx, clusterName)
	if err != nil {
		return err
	}
	work, err := createWork(ctx, s, "pod-deleted")
	if err != nil {
		return err
	}
	for _, in := range []struct {
		c               *cluster.Cluster
		namespace, name string
	}{
		{s.Fleet.Managed(), names.NamespaceAgent, suite.Agent},
		{s.Fleet.Hub(), names.NamespaceHub, suite.HubManager},
		{s.Fleet.Managed(), names.NamespaceAgentAddon, helloAgent},
	} {
		pod, err := suite.Pod(ctx, in.c, in.namespace, in.name)
		if err != nil {
			return err
		}
		started := time.Now()
		if err := in.c.Client.Delete(ctx, pod); err != nil {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
		err = cluster.Until(ctx, "pod "+pod.Name+" to be gone", func(ctx context.Context) error {
			var found corev1.Pod
			err := in.c.Client.Get(ctx, client.ObjectKeyFromObject(pod), &found)
			if err == nil && found.UID == pod.UID {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
		if err := suite.WaitDeployment(ctx, in.c, in.namespace, in.name); err != nil {
			return err
		}
		s.Note("%s: the successor is ready after %.1f s", in.name, time.Since(started).Seconds())
	}
	if _, err := repair(ctx, s, work); err != nil {
		return err
	}
	if err := checkCopy(ctx, s, "after the pods were deleted"); err != nil {
		return err
	}
	now, err := s.Fleet.Requests(ctx, clusterName)
	if err == nil && now != requests {
		err = fmt.Errorf("%d certificates were requested although none was lost", now-requests)
	}
	return err
}

// restartNode restarts the node of the managed cluster.
func (p *play) restartNode(ctx context.Context, s *suite.Session) error {
	managed := s.Fleet.Managed()
	work, err := createWork(ctx, s, "node-restarted")
	if err != nil {
		return err
	}
	requests, err := s.Fleet.Requests(ctx, clusterName)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := managed.RestartNode(ctx); err != nil {
		return err
	}
	s.Note("the node is ready after %.1f s", time.Since(started).Seconds())
	// The pods are those of before, and the kubelet takes a while to notice that their containers ended.
	for _, in := range []struct{ namespace, name string }{
		{names.NamespaceAgent, suite.Agent}, {names.NamespaceAgentAddon, helloAgent},
	} {
		err := cluster.Until(ctx, "the container of "+in.name+" to be another", func(ctx context.Context) error {
			pod, err := suite.Pod(ctx, managed, in.namespace, in.name)
			if err != nil {
				return err
			}
			if suite.Restarts(pod) == 0 && pod.CreationTimestamp.Time.Before(started) {
				return errors.New("its pod was not restarted yet")
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := suite.WaitDeployment(ctx, managed, in.namespace, in.name); err != nil {
			return err
		}
	}
	s.Note("agent and add-on are ready after %.1f s", time.Since(started).Seconds())
	if _, err := repair(ctx, s, work); err != nil {
		return err
	}
	if err := checkCopy(ctx, s, "after the restart"); err != nil {
		return err
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, helloName); err != nil {
		return err
	}
	now, err := s.Fleet.Requests(ctx, clusterName)
	if err == nil && now != requests {
		err = fmt.Errorf("%d certificates were requested although none was lost", now-requests)
	}
	return err
}

// cutHub cuts the network between both clusters for minutes.
func (p *play) cutHub(ctx context.Context, s *suite.Session) error {
	managed := s.Fleet.Managed()
	if err := setLeaseDuration(ctx, s.Fleet, leaseSeconds); err != nil {
		return err
	}
	s.Cleanup("restore the lease duration", func(ctx context.Context) error { return setLeaseDuration(ctx, s.Fleet, 60) })
	work, err := createWork(ctx, s, "hub-unreachable")
	if err != nil {
		return err
	}
	agent, err := observePod(ctx, managed, names.NamespaceAgent, suite.Agent)
	if err != nil {
		return err
	}
	mend, err := managed.Cut(ctx, s.Fleet.Hub())
	if err != nil {
		return err
	}
	isCut := true
	s.Cleanup("mend the network", func(ctx context.Context) error {
		if !isCut {
			return nil
		}
		return mend(ctx)
	})
	if err := outage(ctx, s, agent, work); err != nil {
		return err
	}
	// What changes on the hub meanwhile must arrive afterwards.
	if err := changeWork(ctx, s.Fleet, work, "changed while the hub was away"); err != nil {
		return err
	}
	if err := waitAvailability(ctx, s.Fleet, metav1.ConditionUnknown); err != nil {
		return err
	}
	if err := mend(ctx); err != nil {
		return err
	}
	isCut = false
	return backAgain(ctx, s, agent, work)
}

// outage watches the pod of the agent while the hub is away, and lets the agent repair drift again and again.
func outage(ctx context.Context, s *suite.Session, agent podState, work workRef) error {
	managed := s.Fleet.Managed()
	var slowest time.Duration
	var last time.Time
	repairs, length := 0, s.Fleet.Outage()
	looks, err := cluster.During(ctx, length, func(ctx context.Context) error {
		pod, err := suite.Pod(ctx, managed, names.NamespaceAgent, suite.Agent)
		if err != nil {
			return err
		}
		if now := (podState{uid: pod.UID, restarts: suite.Restarts(pod)}); now != agent {
			return fmt.Errorf("the pod of the agent was %+v and is %+v", agent, now)
		}
		if !cluster.IsReady(pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
		if time.Since(last) < repairPause {
			return nil
		}
		took, err := repair(ctx, s, work)
		last, slowest, repairs = time.Now(), max(slowest, took), repairs+1
		if err == nil && took > repairLimit {
			err = fmt.Errorf("a repair took %s", took)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("while the hub was away: %w", err)
	}
	s.Note("away for %s: the pod was ready at each of %d looks; %d repairs, the slowest took %s", length, looks, repairs,
		slowest.Round(time.Millisecond))
	return nil
}

// backAgain waits until everything is as it should be after an outage, without a restart.
func backAgain(ctx context.Context, s *suite.Session, agent podState, work workRef) error {
	started := time.Now()
	if err := waitAvailability(ctx, s.Fleet, metav1.ConditionTrue); err != nil {
		return err
	}
	s.Note("the cluster is available %.1f s after the hub was back", time.Since(started).Seconds())
	if err := waitContent(ctx, s.Fleet, work, "changed while the hub was away"); err != nil {
		return err
	}
	s.Note("a change that was made meanwhile is applied after %.1f s", time.Since(started).Seconds())
	now, err := observePod(ctx, s.Fleet.Managed(), names.NamespaceAgent, suite.Agent)
	if err != nil {
		return err
	}
	if now != agent {
		return fmt.Errorf("the pod of the agent was %+v and is %+v", agent, now)
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, helloName); err != nil {
		return err
	}
	return checkCopy(ctx, s, "after the outage")
}

// setLeaseDuration sets how often the agent renews its lease on the hub.
func setLeaseDuration(ctx context.Context, f *suite.Fleet, seconds int) error {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, seconds))
	if err := f.Hub().Client.Patch(ctx, mc, patch); err != nil {
		return fmt.Errorf("setting the lease duration: %w", err)
	}
	return nil
}

// waitAvailability waits until the cluster is available, or until the hub does not know whether it is.
func waitAvailability(ctx context.Context, f *suite.Fleet, want metav1.ConditionStatus) error {
	return cluster.Until(ctx, "the cluster's availability to be "+string(want), func(ctx context.Context) error {
		var mc clusterv1.ManagedCluster
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Name: clusterName}, &mc); err != nil {
			return err
		}
		available := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		if available == nil {
			return errors.New("there is no such condition")
		}
		if available.Status != want {
			return fmt.Errorf("it is %s: %s", available.Status, available.Message)
		}
		return nil
	})
}
