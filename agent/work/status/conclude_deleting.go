package status

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// maxNext is how many objects are named that are deleted after those that are waited for.
const maxNext = 5

// Deleting is the condition of a work that is being deleted: what it waits for, and which objects are deleted after
// that. An obstacle takes the place of what it waits for.
func Deleting(waiting, obstacle string, next []workv1.AppliedManifestResourceMeta) metav1.Condition {
	text := deletingText
	switch {
	case obstacle != "":
		text += ": " + obstacle
	case waiting != "":
		text += ": waiting for " + waiting
	}
	if len(next) > 0 {
		names := make([]string, len(next))
		for i := range next {
			names[i] = manifest.IDOf(next[i]).String()
		}
		text += "; deleted after that: " + message.List(names, maxNext, ", ")
	}
	return metav1.Condition{
		Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: reasonDeleting, Message: text,
	}
}

// NotRecorded is the condition Applied of a work whose AppliedManifestWork cannot be written; nil when a retry may help
// without a person. permanent reports whether a retry is of no use at all.
func NotRecorded(err error) (applied *metav1.Condition, permanent bool) {
	const listing = ": the AppliedManifestWork, which lists its objects on the managed cluster, cannot be written, so " +
		"nothing is applied: "
	applied = &metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, Reason: reasonWorkFailed}
	var wrong *manifest.PermanentError
	switch {
	case errors.As(err, &wrong):
		applied.Message = failedText + ": " + wrong.Message
		return applied, true
	case apierror.LacksRight(err):
		applied.Message = failedText + listing + err.Error() + "; grant the agent get, list, watch, create, update, patch " +
			"and delete of appliedmanifestworks on the managed cluster"
	case reconcile.KindGone(err), meta.IsNoMatchError(err):
		applied.Message = failedText + listing + err.Error() + "; install the CustomResourceDefinition of " +
			"AppliedManifestWorks on the managed cluster"
	case manifest.IsRefusal(err):
		applied.Message = failedText + listing + err.Error() + "; correct what refuses it on the managed cluster"
	default:
		return nil, false
	}
	return applied, false
}
