// Command image builds the images of Spokelet with the Go toolchain alone: no container engine, no registry. It prints
// a table of what it built. "make image" calls it; docs/operations/images.md describes what it writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/tools/image/build"
	"github.com/spokelet/spokelet/tools/image/plan"
	"github.com/spokelet/spokelet/tools/image/roots"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds all images and prints the table.
func run(ctx context.Context, args []string, out io.Writer) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	rows, err := build.Images(ctx, options, plan.All())
	if err != nil {
		return err
	}
	return table(out, rows)
}

// parse turns a command line into options.
func parse(args []string) (build.Options, error) {
	options := build.Options{Own: runtime.GOARCH}
	var created int64
	var platforms []string
	flags := pflag.NewFlagSet("image", pflag.ContinueOnError)
	flags.StringVar(&options.Source, "source", ".", "top of the repository")
	flags.StringVar(&options.Output, "output", "bin/images", "folder for the images")
	flags.StringVar(&options.Version, "version", "unversioned", "version of the images")
	flags.StringVar(&options.Revision, "revision", "unknown", "commit that the images are built from")
	flags.Int64Var(&created, "created", 0, "time of that commit, in seconds since 1970")
	flags.StringVar(&options.Repository, "repository", "spokelet", "what stands before the names of images in archives")
	flags.StringSliceVar(&options.Tags, "tags", nil, "tags of the images in archives; empty means the version")
	flags.StringSliceVar(&platforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "platforms to build for")
	if err := flags.Parse(args); err != nil {
		return build.Options{}, err
	}
	if flags.NArg() > 0 {
		return build.Options{}, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	options.Created = time.Unix(created, 0).UTC()
	if len(options.Tags) == 0 {
		options.Tags = []string{options.Version}
	}
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		if system != "linux" {
			return build.Options{}, fmt.Errorf("--platforms: %q is not among linux/amd64 and linux/arm64", platform)
		}
		options.Architectures = append(options.Architectures, arch)
	}
	version, err := rootsVersion()
	if err != nil {
		return build.Options{}, err
	}
	options.RootsVersion = version
	return options, nil
}

// rootsVersion is the version of the root certificates that are linked into this program.
func rootsVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program does not say what it was built from: build it with Go modules")
	}
	for _, module := range info.Deps {
		if module.Path == roots.Module {
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("module %s is not linked into this program", roots.Module)
}

// table prints what was built.
func table(out io.Writer, rows []build.Row) error {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(writer, "IMAGE\tPLATFORM\tCOMPRESSED\tUNPACKED\tDIGEST")
	for _, row := range rows {
		compressed, unpacked := row.Compressed.String(), row.Unpacked.String()
		if row.Unpacked == 0 {
			compressed, unpacked = "", ""
		}
		fmt.Fprintf(writer, "%s\t%s\t%s\t%s\t%s\n", row.Image, row.Platform, compressed, unpacked, row.Digest)
	}
	if err := writer.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}
