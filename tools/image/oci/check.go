package oci

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Expectation holds what an image is to be.
type Expectation struct {
	// Config holds what it is to say about itself.
	Config Config
	// Names are links that lead to the program.
	Names []string
	// Files are further files, which are no programs.
	Files []string
	// Limit is the most that it may take unpacked, in bytes; 0 is not a limit.
	Limit int64
}

// Check compares an image with what it is to be and returns all differences as one error: a file that is missing or
// too many, a second program, which could be a shell, a program that does not run alone or on the processor, a file
// that others than root may write, another user, program or label, and a size over the limit.
func Check(facts Facts, want Expectation) error {
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	kinds := map[string]string{want.Config.Program: KindProgram}
	for _, name := range want.Names {
		kinds[name] = KindLink
	}
	for _, file := range want.Files {
		kinds[file] = KindFile
	}
	for _, folder := range folders(slices.Collect(maps.Keys(kinds))) {
		kinds[folder] = KindFolder
	}
	for _, at := range slices.Sorted(maps.Keys(facts.Contents)) {
		entry := facts.Contents[at]
		switch {
		case kinds[at] == "":
			complain("%s, a %s, does not belong into the image", at, entry.Kind)
		case entry.Kind != kinds[at]:
			complain("%s is a %s, not a %s", at, entry.Kind, kinds[at])
		case entry.Kind == KindLink && entry.Target != want.Config.Program:
			complain("%s leads to %s, not to %s", at, entry.Target, want.Config.Program)
		}
		if entry.Owner != [2]int{} || entry.Kind != KindLink && entry.Mode&0o7022 != 0 {
			complain("%s is of %d:%d with mode %#o, so that not only root may change it", at, entry.Owner[0],
				entry.Owner[1], entry.Mode)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(kinds)) {
		if _, exists := facts.Contents[at]; !exists {
			complain("%s, a %s, is missing", at, kinds[at])
		}
	}
	checkPrograms(facts, want.Config.Arch, complain)
	checkConfig(facts, want.Config, complain)
	if size := facts.Contents.Unpacked(); want.Limit > 0 && size > want.Limit {
		complain("it takes %s unpacked, over the limit of %s", Size(size), Size(want.Limit))
	}
	return errors.Join(wrong...)
}

// checkPrograms checks that programs run on the processor, and alone.
func checkPrograms(facts Facts, arch string, complain func(format string, args ...any)) {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	for _, at := range slices.Sorted(maps.Keys(facts.Machines)) {
		if facts.Machines[at] != machine || machine == elf.EM_NONE {
			complain("%s is no program for %s: it is for %s", at, arch, facts.Machines[at])
		}
	}
	for _, at := range facts.Dynamic {
		complain("%s needs a loader or libraries, which the image does not have", at)
	}
}

// checkConfig checks what the image says about itself.
func checkConfig(facts Facts, want Config, complain func(format string, args ...any)) {
	got := facts.Config
	if got.OS != system || got.Architecture != want.Arch {
		complain("it is for %s/%s, not for %s/%s", got.OS, got.Architecture, system, want.Arch)
	}
	if got.Config.User != want.User {
		complain("it runs as %q, not as %q", got.Config.User, want.User)
	}
	if !slices.Equal(got.Config.Entrypoint, []string{want.Program}) || len(got.Config.Cmd) > 0 {
		complain("it starts %q with arguments %q, not %q without", got.Config.Entrypoint, got.Config.Cmd, want.Program)
	}
	if !maps.Equal(got.Config.Labels, want.Labels) {
		complain("its labels are %v, not %v", got.Config.Labels, want.Labels)
	}
	if !got.Created.Equal(want.Created) {
		complain("it was created at %s, not at %s", got.Created, want.Created)
	}
}

// Size is a number of bytes that prints as MiB.
type Size int64

// String returns the size in MiB, with one digit behind the point.
func (s Size) String() string { return fmt.Sprintf("%.1f MiB", float64(s)/(1<<20)) }
