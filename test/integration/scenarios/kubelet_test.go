package scenarios_test

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// byHand is the label of pods that become ready when a test lets them.
const byHand = "stories.example.com/ready-by-hand"

// playedByHand reports whether the tests play a pod: it has the label byHand, or belongs to a Job.
func playedByHand(pod *corev1.Pod) bool {
	_, waits := pod.Labels[byHand]
	_, job := pod.Labels[batchv1.JobNameLabel]
	return waits || job
}

// letRun waits for the pods with the label byHand among those of an app, and lets them run.
func letRun(t *testing.T, cluster, app string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		err := clusters[cluster].Client.List(t.Context(), &pods, client.MatchingLabels{"app": app}, client.HasLabels{byHand})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if err := suite.RunPod(t.Context(), clusters[cluster].Client, &pods.Items[i]); err != nil {
				return err
			}
		}
		if len(pods.Items) == 0 {
			return errors.New("there is no pod of " + app + " on " + cluster)
		}
		return nil
	})
}

// finish waits for a pod of a Job among the agents of add-ons, and ends it in a phase.
func finish(t *testing.T, cluster, job string, phase corev1.PodPhase) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		err := clusters[cluster].Client.List(t.Context(), &pods, client.InNamespace(names.NamespaceAgentAddon),
			client.MatchingLabels{batchv1.JobNameLabel: job})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
				pod.Status.Phase = phase
				return clusters[cluster].Client.Status().Update(t.Context(), pod)
			}
		}
		return errors.New("there is no pod of Job " + job + " on " + cluster)
	})
}
