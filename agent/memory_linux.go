package agent

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// adviceCold asks the kernel to take these pages first when it needs memory (MADV_COLD, Linux 5.4); the syscall package
// does not name it.
const adviceCold = 20

// giveBack gives back what the process does not need at rest: heap that is free, and the pages of the program that were
// read, which the kernel keeps at hand and maps again when they are used.
func giveBack() error {
	debug.FreeOSMemory()
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("looking at the memory of the process: %w", err)
	}
	defer func() { _ = smaps.Close() }()
	spans, err := programSpans(smaps)
	if err != nil {
		return fmt.Errorf("looking at the memory of the process: %w", err)
	}
	for _, s := range spans {
		// The order matters: only pages that are still mapped are marked. An older kernel does not know the mark.
		_ = advise(s, adviceCold)
		if err := advise(s, syscall.MADV_DONTNEED); err != nil {
			return fmt.Errorf("giving back pages of the program: %w", err)
		}
	}
	return nil
}

func advise(s span, advice uintptr) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, s.start, s.end-s.start, advice); errno != 0 {
		return errno
	}
	return nil
}
