package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of processor time in /proc on Linux.
const ticksPerSecond = 100

// Mebibyte is 2^20 bytes.
const Mebibyte = 1 << 20

// Processor returns the processor time that a process has used, in steps of 10 ms.
func Processor(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of a process: %w", err)
	}
	return parseProcessor(string(raw))
}

// parseProcessor reads /proc/PID/stat (proc(5)).
func parseProcessor(stat string) (time.Duration, error) {
	// The name of the program, in parentheses, may contain blanks; user and system time are fields 14 and 15.
	end := strings.LastIndex(stat, ") ")
	if end < 0 {
		return 0, fmt.Errorf("reading the processor time of a process: %q", stat)
	}
	fields := strings.Fields(stat[end+2:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the processor time of a process: %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// Peak returns the largest resident memory of a process since its start or the last ResetPeak, in bytes.
func Peak(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return parsePeak(string(status))
}

// parsePeak reads /proc/PID/status (proc(5)).
func parsePeak(status string) (float64, error) {
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmHWM:" {
			kibibytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, fmt.Errorf("%q: %w", line, err)
			}
			return kibibytes * 1024, nil
		}
	}
	return 0, errors.New("the kernel does not report the largest memory of a process")
}

// ResetPeak makes Peak begin again.
func ResetPeak(pid int) error {
	// 5 resets the high-water mark (proc(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600); err != nil {
		return fmt.Errorf("resetting the largest memory of a process: %w", err)
	}
	return nil
}
