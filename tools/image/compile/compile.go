package compile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Program holds what to compile.
type Program struct {
	// Dir is the top of the Go module.
	Dir string
	// Package is the folder of the program, from Dir.
	Package string
	// Flags are the flags of the linker.
	Flags string
	// Arch is the architecture, as Go calls it. The system is always Linux.
	Arch string
}

// Build compiles the program into a file. An error has what the compiler printed.
func (p Program) Build(ctx context.Context, output string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", p.Flags, "-o", output,
		p.Package)
	command.Dir = p.Dir
	// What is set last counts. Everything that changes the bytes is set, to what Go does by default.
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+p.Arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
		"GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	if printed, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s for linux/%s: %w\n%s", p.Package, p.Arch, err, strings.TrimSpace(string(printed)))
	}
	return nil
}
