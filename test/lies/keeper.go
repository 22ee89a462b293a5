package lies

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// keepEvery is how often the kubelet looks whether programs run.
	keepEvery = time.Second
	// recovers is how long after the lies a program may end because of them.
	recovers = 15 * time.Second
	// starts is how long a program may take to start, on a machine with much other work.
	starts = time.Minute
)

// keeper plays the kubelets of our own programs: one that ended is started again. It may end when it starts while its
// API server lies.
type keeper struct {
	mu sync.Mutex
	// honest is since when all say the truth; zero while they do not.
	honest time.Time
	// began is when each program was last started by the keeper.
	began map[*sandbox.Process]time.Time
	again int
}

// start starts a program and notes when.
func (k *keeper) start(program *sandbox.Process) error {
	if k.began == nil {
		k.began = map[*sandbox.Process]time.Time{}
	}
	k.began[program] = time.Now()
	return program.Start()
}

// mayEnd reports whether a program that began at some time, zero for long ago, may have ended now because of lies. One
// that began among them may find out late that it cannot start.
func (k *keeper) mayEnd(began, now time.Time) bool {
	lied := k.honest.IsZero() || now.Sub(k.honest) <= recovers
	return lied || began.Before(k.honest) && now.Sub(began) <= starts
}

// restart kills a program and starts it again after a pause.
func (k *keeper) restart(ctx context.Context, program *sandbox.Process, after time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	program.Kill()
	fleet.Pause(ctx, after)
	return k.start(program)
}

// keep starts programs again that ended.
func (k *keeper) keep(ctx context.Context, programs func() []*sandbox.Process, ended func(error)) {
	for fleet.Pause(ctx, keepEvery) {
		k.mu.Lock()
		for _, program := range programs() {
			err := program.Exited()
			if err == nil {
				continue
			}
			k.again++
			if !k.mayEnd(k.began[program], time.Now()) {
				ended(err)
			}
			if failed := k.start(program); failed != nil {
				ended(errors.Join(err, failed))
			}
		}
		k.mu.Unlock()
	}
}

// says notes whether all say the truth.
func (k *keeper) says(truth bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.honest = (time.Time{}); truth {
		k.honest = time.Now()
	}
}
