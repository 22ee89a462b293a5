package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// platform is an operating system with an architecture, as Go names them.
type platform struct{ os, arch string }

// platforms are those for which the plugin is built.
func platforms() []platform {
	return []platform{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	}
}

// program is the name of the program on the platform.
func (p platform) program() string {
	if p.os == "windows" {
		return "kubectl-spokelet.exe"
	}
	return "kubectl-spokelet"
}

// archive is the name of the archive for the platform.
func (p platform) archive() string {
	ending := ".tar.gz"
	if p.os == "windows" {
		ending = ".zip"
	}
	return "kubectl-spokelet_" + p.os + "_" + p.arch + ending
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to stop.
	}
}

// options are what to build.
type options struct {
	source, license, to, version, link, url string

	platforms []platform
}

// run builds for all platforms.
func run(ctx context.Context, args []string) error {
	o := options{platforms: platforms()}
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", ".", "the folder of the program")
	flags.StringVar(&o.license, "license", "../../LICENSE", "the file with the license")
	flags.StringVar(&o.to, "to", "", "the folder for the files")
	flags.StringVar(&o.version, "version", "v0.0.0", "the version in the manifest of krew")
	flags.StringVar(&o.link, "ldflags", "", "flags of the linker")
	flags.StringVar(&o.url, "url", "", "the address below which the archives will be")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return build(ctx, o)
}

// build writes archives, checksums and the manifest.
func build(ctx context.Context, o options) error {
	license, err := os.ReadFile(o.license)
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	if err := os.MkdirAll(o.to, 0o750); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	var sums strings.Builder
	sha := map[platform]string{}
	for _, p := range o.platforms {
		program, err := compile(ctx, o, p)
		if err != nil {
			return err
		}
		packed, err := p.pack(program, license)
		if err != nil {
			return fmt.Errorf("packing for %s/%s: %w", p.os, p.arch, err)
		}
		sum := sha256.Sum256(packed)
		sha[p] = hex.EncodeToString(sum[:])
		fmt.Fprintf(&sums, "%s  %s\n", sha[p], p.archive())
		if err := write(o.to, p.archive(), packed); err != nil {
			return err
		}
	}
	manifest, err := yaml.Marshal(o.krew(sha))
	if err != nil {
		return fmt.Errorf("encoding the manifest of krew: %w", err)
	}
	return errors.Join(write(o.to, "checksums.txt", []byte(sums.String())), write(o.to, "spokelet.yaml", manifest))
}

// write writes a file that everybody may read.
func write(folder, name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(folder, name), content, //nolint:gosec // It is for everybody.
		0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// compile builds the program for a platform.
func compile(ctx context.Context, o options, p platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "dist-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // A folder that is left does no harm.
	to := filepath.Join(folder, p.program())
	c := exec.CommandContext(ctx, "go", "build", "-ldflags", o.link, "-o", to, ".")
	c.Dir, c.Env = o.source, append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s/%s: %w: %s", p.os, p.arch, err, out)
	}
	return os.ReadFile(to)
}

// epoch is the time of all files in archives, so that the same content gives the same bytes.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// pack packs the program with the license.
func (p platform) pack(program, license []byte) ([]byte, error) {
	files := []struct {
		name    string
		content []byte
		mode    int64
	}{{p.program(), program, 0o755}, {"LICENSE", license, 0o644}}
	var out bytes.Buffer
	if p.os == "windows" {
		archive := zip.NewWriter(&out)
		for _, file := range files {
			to, err := archive.CreateHeader(&zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: epoch()})
			if err != nil {
				return nil, err
			}
			if _, err := io.Copy(to, bytes.NewReader(file.content)); err != nil {
				return nil, err
			}
		}
		err := archive.Close()
		return out.Bytes(), err
	}
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content)), ModTime: epoch()}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), packed.Close())
	return out.Bytes(), err
}

// krew is the manifest with which krew installs the plugin.
func (o options) krew(sha map[platform]string) map[string]any {
	var all []any
	for _, p := range o.platforms {
		all = append(all, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      strings.TrimSuffix(o.url, "/") + "/" + p.archive(), "sha256": sha[p], "bin": p.program(),
			"files": []any{
				map[string]any{"from": p.program(), "to": "."}, map[string]any{"from": "LICENSE", "to": "."},
			},
		})
	}
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": map[string]any{"name": "spokelet"},
		"spec": map[string]any{
			"version": o.version, "shortDescription": "Say why an add-on of a fleet does not work",
			"description": "Says what is wrong with a fleet of clusters and their add-ons, where, and what to do, on\n" +
				"any hub of Open Cluster Management. Shows what a change would do to the fleet, and how far it is.\n",
			"caveats":   "A hub manager is not needed. ClusterRole spokelet-view has the rights that it needs.\n",
			"platforms": all,
		},
	}
}
