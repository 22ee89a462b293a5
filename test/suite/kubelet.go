package suite

import (
	"context"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// kubelet lets pods run: each is ready at once, except those that a test plays.
type kubelet struct {
	client.Client

	plays func(pod *corev1.Pod) bool
}

// Reconcile implements reconcile.Reconciler.
func (k kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := k.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if k.plays(&pod) || pod.Status.Phase == corev1.PodRunning {
		return ctrl.Result{}, nil
	}
	err := RunPod(ctx, k, &pod)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // a newer pod comes by an event of its own
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// RunPod makes a pod run and be ready.
func RunPod(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return c.Status().Update(ctx, pod)
}

// StartKubelet plays the kubelets of a control plane: every pod runs and is ready at once, except those that the test
// itself plays.
func StartKubelet(t T, name string, p *Plane, plays func(pod *corev1.Pod) bool) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(p.Admin(), ctrl.Options{
		Scheme: Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	require.NoError(t, err)
	err = ctrl.NewControllerManagedBy(mgr).Named("kubelet").For(&corev1.Pod{}).Complete(kubelet{mgr.GetClient(), plays})
	require.NoError(t, err)
	StartManager(t, "the kubelets of "+name, mgr)
}
