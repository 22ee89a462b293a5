package rights_test

import "context"

type rights struct{}

func (w *world) review(ctx context.Context) error { return nil }
