package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// profileSeconds is how long a profile lasts; a shorter step leaves the rest of it empty.
const profileSeconds = 6

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
			if err := writeProfile(ctx, config, file); err != nil {
				fmt.Fprintln(r.Log, "profile:", err)
			}
		})
	}
	return &under
}

func writeProfile(ctx context.Context, config *rest.Config, file string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/debug/pprof/profile").
		Param("seconds", fmt.Sprint(profileSeconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", filepath.Base(file), err)
	}
	return os.WriteFile(file, raw, 0o600)
}
