package measure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Footprint is the resident memory of a process, in bytes, by what it is.
type Footprint struct {
	// Anonymous is heap, stacks and variables that were written: memory that is the process's own.
	Anonymous float64
	// Text, Tables and Data are pages of the program file: instructions, constants and tables of the runtime, and
	// variables that nobody wrote yet. The kernel can drop them and read them again, but counts them as resident as long
	// as it does not.
	Text, Tables, Data float64
}

// File is the part that is mapped from files.
func (f Footprint) File() float64 { return f.Text + f.Tables + f.Data }

// Resident is all of it.
func (f Footprint) Resident() float64 { return f.Anonymous + f.File() }

// String tells the parts in MiB.
func (f Footprint) String() string {
	return fmt.Sprintf("%.1f MiB (anonymous %.1f, text %.1f, tables %.1f, data %.1f)", f.Resident()/Mebibyte,
		f.Anonymous/Mebibyte, f.Text/Mebibyte, f.Tables/Mebibyte, f.Data/Mebibyte)
}

// Resident reads what a process has resident now.
func Resident(pid int) (Footprint, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return Footprint{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	defer func() { _ = file.Close() }()
	found, err := parseFootprint(file)
	if err != nil {
		return Footprint{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return found, nil
}

// parseFootprint adds up the mappings of /proc/PID/smaps (proc(5)).
func parseFootprint(smaps io.Reader) (Footprint, error) {
	var sum Footprint
	part := &sum.Anonymous
	var resident float64
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Rss:", "Anonymous:":
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return Footprint{}, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			if fields[0] == "Rss:" {
				resident = kilobytes * 1024
				*part += resident
				continue
			}
			// A page of a file that was written is a copy of the process's own.
			own := min(kilobytes*1024, resident)
			*part -= own
			sum.Anonymous += own
		default:
			if !strings.HasSuffix(fields[0], ":") {
				part = sum.part(fields)
			}
		}
	}
	return sum, lines.Err()
}

// part tells where a mapping belongs, by its line in smaps: addresses, permissions, offset, device, inode, file.
func (f *Footprint) part(fields []string) *float64 {
	if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
		return &f.Anonymous
	}
	switch permissions := fields[1]; {
	case strings.Contains(permissions, "x"):
		return &f.Text
	case strings.Contains(permissions, "w"):
		return &f.Data
	}
	return &f.Tables
}
