package reconcile

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InPages lists objects from an API server, size of them at a time, and shows each page. Where others may have made any
// number of large objects, it keeps a list from taking all memory. It ends with the first error.
func InPages[L client.ObjectList](
	ctx context.Context, c client.Reader, size int64, newPage func() L, see func(L) error, in ...client.ListOption,
) error {
	for more, first := "", true; first || more != ""; first = false {
		page := newPage()
		options := slices.Concat(in, []client.ListOption{client.Limit(size), client.Continue(more)})
		if err := c.List(ctx, page, options...); err != nil {
			return err
		}
		if err := see(page); err != nil {
			return err
		}
		more = page.GetContinue()
	}
	return nil
}
