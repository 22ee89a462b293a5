package reconcile

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InPages lists objects from an API server, size of them at a time, and shows each page. Where others may have made
// any number of large objects, it keeps a list from taking all memory. It ends with the first error. Where that
// takes so long that the API server has forgotten the state of the first page, the other pages are of a later one.
func InPages[L client.ObjectList](
	ctx context.Context, c client.Reader, size int64, newPage func() L, see func(L) error, in ...client.ListOption,
) error {
	for more, first := "", true; first || more != ""; first = false {
		page := newPage()
		options := slices.Concat(in, []client.ListOption{client.Limit(size), client.Continue(more)})
		err := c.List(ctx, page, options...)
		if next := nextAfterExpiry(err); next != "" && next != more {
			more = next
			continue
		}
		if err != nil {
			return err
		}
		if err := see(page); err != nil {
			return err
		}
		more = page.GetContinue()
	}
	return nil
}

// nextAfterExpiry returns where to go on after an error that the list is too old to be continued; empty for any other.
func nextAfterExpiry(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
