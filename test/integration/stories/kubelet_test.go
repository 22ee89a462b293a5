package stories_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// byHand is the label of pods that become ready when a test lets them.
const byHand = "stories.example.com/ready-by-hand"

// kubelet lets pods run: each is ready at once, except those with the label byHand and those of Jobs, which the tests
// play.
type kubelet struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (k kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := k.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	_, waits := pod.Labels[byHand]
	_, job := pod.Labels[batchv1.JobNameLabel]
	if waits || job || pod.Status.Phase == corev1.PodRunning {
		return ctrl.Result{}, nil
	}
	err := run(ctx, k, &pod)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // a newer pod comes by an event of its own
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// run makes a pod run and be ready.
func run(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return c.Status().Update(ctx, pod)
}

// startKubelet plays the kubelets of a cluster.
func startKubelet(t suite.T, name string, own *suite.Plane) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(own.Admin(), ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	require.NoError(t, err)
	err = ctrl.NewControllerManagedBy(mgr).Named("kubelet").For(&corev1.Pod{}).Complete(kubelet{mgr.GetClient()})
	require.NoError(t, err)
	suite.StartManager(t, "the kubelets of "+name, mgr)
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
			if err := run(t.Context(), clusters[cluster].Client, &pods.Items[i]); err != nil {
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
