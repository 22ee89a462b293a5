package memory

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// headRoom is the least memory, in bytes, that stays outside of the limit of the runtime: the pages of the program,
// which the runtime does not count, and buffers of the kernel.
const headRoom = 32 << 20

// SetLimit sets the soft limit of the runtime (GOMEMLIMIT) below that of the container, so that the garbage collector
// runs more often before the kernel ends the process. It does nothing where the variable GOMEMLIMIT is set or memory is
// not limited. It applies to the whole process.
func SetLimit(logger logr.Logger) {
	provider := func() (uint64, error) {
		limit, err := memlimit.FromCgroup()
		return usable(limit), err
	}
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(provider), memlimit.WithRatio(1))
	switch {
	case err != nil:
		logger.V(1).Info("the memory limit of the container is unknown, so the runtime has none", "reason", err.Error())
	case limit > 0 && limit < math.MaxInt64:
		logger.V(1).Info("the runtime has a memory limit below that of the container", "bytes", limit)
	}
}

// usable returns what the runtime may use of the limit of a container, in bytes: all but a tenth or headRoom, whichever
// is more, and at least half.
func usable(limit uint64) uint64 {
	reserve := max(limit/10, headRoom)
	return limit - min(reserve, limit/2)
}
