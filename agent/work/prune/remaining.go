package prune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/message"
)

// maxBlocked is how many blocked objects are named, and maxFinalizers how many finalizers of each.
const maxBlocked, maxFinalizers = 10, 5

// Remaining holds what is left after pruning.
type Remaining struct {
	// Pending are the entries that must stay listed, as they were: those of Blocked and Next.
	Pending []workv1.AppliedManifestResourceMeta
	// Blocked are the objects whose deletion was requested, or failed, and that are not gone.
	Blocked []Blocked
	// Next are the objects whose turn has not come.
	Next []workv1.AppliedManifestResourceMeta
	// Unrecorded reports that Next waits for the record of what went.
	Unrecorded bool
	// Wake is when to check again without an event; zero means never.
	Wake time.Time
	// Err joins the errors; their entries are pending.
	Err error
}

// Blocked is one object that still exists although it was to be deleted.
type Blocked struct {
	// Entry is the object.
	Entry workv1.AppliedManifestResourceMeta
	// Since is when its deletion was requested, or could first not be requested.
	Since time.Time
	// Finalizers are those that hold it, Cause what else is known about why it still exists.
	Finalizers []string
	Cause      string
}

// blocksUntil is when the blocked objects stop to block the ranks after them: the timeout after the last of them was
// deleted. It is zero when there are none.
func (r *Remaining) blocksUntil(timeout time.Duration) time.Time {
	var until time.Time
	for i := range r.Blocked {
		if end := r.Blocked[i].Since.Add(timeout); end.After(until) {
			until = end
		}
	}
	return until
}

// Overdue returns the objects that should have gone by now.
func (r *Remaining) Overdue(now time.Time) []Blocked {
	return slices.DeleteFunc(slices.Clone(r.Blocked), func(b Blocked) bool {
		return now.Before(b.Since.Add(overdueAfter))
	})
}

// Describe names blocked objects, the first of them when there are many; empty when there are none.
func Describe(blocked []Blocked) string {
	if len(blocked) == 0 {
		return ""
	}
	lines := make([]string, len(blocked))
	for i := range blocked {
		lines[i] = blocked[i].String()
	}
	noun := "objects"
	if len(blocked) == 1 {
		noun = "object"
	}
	return fmt.Sprintf("%d %s: %s", len(blocked), noun, message.List(lines, maxBlocked, ", "))
}

// String describes the object, why it still exists and since when. It gives the instant, not the age, so that the text
// does not change by itself.
func (b Blocked) String() string {
	var known []string
	switch len(b.Finalizers) {
	case 0:
	case 1:
		known = append(known, "finalizer "+b.Finalizers[0])
	default:
		known = append(known, "finalizers "+message.List(b.Finalizers, maxFinalizers, ", "))
	}
	if !b.Since.IsZero() {
		known = append(known, "since "+b.Since.UTC().Format(time.RFC3339))
	}
	if b.Cause != "" {
		known = append(known, message.Cut(b.Cause, message.MaxCause))
	}
	if len(known) == 0 {
		return manifest.IDOf(b.Entry).String()
	}
	return manifest.IDOf(b.Entry).String() + " (" + strings.Join(known, ", ") + ")"
}

// ErrorText is an error for a condition: the message of the API server, but not the error of a broken connection, which
// has another text each time.
func ErrorText(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	if permanent := manifest.AsFailure(err); permanent != nil {
		return permanent.Message
	}
	return "the API server did not answer"
}

// namespaceCause is why a namespace that is being deleted still exists, as its conditions tell; empty for other kinds.
func namespaceCause(live *unstructured.Unstructured) string {
	if live.GetKind() != "Namespace" || live.GetAPIVersion() != "v1" {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	said := map[string]string{}
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		name, _ := condition["type"].(string)
		text, _ := condition["message"].(string)
		if condition["status"] == string(metav1.ConditionTrue) {
			said[name] = text
		}
	}
	for _, name := range []string{
		"NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure",
		"NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionDiscoveryFailure",
	} {
		if said[name] != "" {
			return said[name]
		}
	}
	return ""
}

// graceOf is the grace period of an object that is being deleted, such as that of a Pod.
func graceOf(live metav1.Object) time.Duration {
	if seconds := live.GetDeletionGracePeriodSeconds(); seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 0
}
