package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/bench/measure"
)

// profile asks both API servers what they do during a step, when profiles are wanted, and returns what waits for them.
// A profile that fails is told and lets the step go on.
func (r *run) profile(ctx context.Context, step string) *sync.WaitGroup {
	var under sync.WaitGroup
	if r.Profiles == "" {
		return &under
	}
	ctx = context.WithoutCancel(ctx)
	for name, config := range map[string]*rest.Config{
		"hub": r.fleet.Hub.Admin(), "cluster": r.cluster.ControlPlane.Admin(),
	} {
		file := filepath.Join(r.Profiles, strings.ReplaceAll(step, " ", "-")+"."+name+".pprof")
		under.Go(func() {
			if err := measure.ProfileServer(ctx, config, file); err != nil {
				fmt.Fprintln(r.Log, "profile:", err)
			}
		})
	}
	return &under
}
