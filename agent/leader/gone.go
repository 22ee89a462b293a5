package leader

import (
	"context"
	"regexp"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// deploymentPod is the name of a pod of a Deployment: that of the Deployment, the hash of the template and a random
// suffix. A host that the process of an agent may be named after is not called so.
var deploymentPod = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*-` +
	`[bcdfghjklmnpqrstvwxz2456789]{5,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// podOf returns the pod that the holder of a Lease is; empty if it may be something else. An agent of ours is named
// after its pod. One of OCM has a UID behind that, and so has one of ours that does not know its pod.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	if !deploymentPod.MatchString(pod) {
		return ""
	}
	return pod
}

// over reports whether the term of the holder of a Lease is over, which was not renewed for some time: it expired, or
// the pod that held it does not exist any more, as when an operator replaced its Deployment and took its rights before
// it could release the Lease.
func (e Election) over(ctx context.Context, term coordinationv1.LeaseSpec, silent time.Duration) bool {
	if silent > time.Duration(ptr.Deref(term.LeaseDurationSeconds, 0))*time.Second {
		return true
	}
	pod := podOf(ptr.Deref(term.HolderIdentity, ""))
	// A pod that was deleted by force may run on; then it renews its Lease, and is heard.
	if pod == "" || silent < e.Times.RetryPeriod+vacantPeriod {
		return false
	}
	// From the API server, which has the word: any other answer, also that this may not be read, proves nothing.
	_, err := e.Pods.Pods(e.Namespace).Get(ctx, pod, metav1.GetOptions{})
	return reconcile.ObjectGone(err)
}
