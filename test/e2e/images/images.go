package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// versionVariable is what the linker sets to the version of a program.
const versionVariable = "github.com/spokelet/spokelet/internal/version.version"

// image is an image with one program, which has the name of the image.
type image struct {
	// name and tag name the image; the program is called as the last element of the name.
	name, tag string
	// source is the package of the program, from the folder of its module.
	module, source string
	// names are further paths that lead to the program.
	names []string
}

// product are our images in a version, and the agent of the sample add-on.
func product(root, tag string) []image {
	return []image{
		{
			name: "spokelet/spokelet", tag: tag, module: root, source: "./cmd/spokelet",
			names: []string{"registration", "registration-operator", "work"},
		},
		{name: "spokelet/spokelet-hub", tag: tag, module: root, source: "./cmd/spokelet-hub"},
	}
}

// Product compiles agent and hub manager from the source in root, stamped with tag as their version, and writes their
// images with that tag into a file in dir. It returns the path of the file.
func Product(ctx context.Context, root, dir, tag string) (string, error) {
	return write(ctx, filepath.Join(dir, "product-"+tag+".tar"), dir, product(root, tag))
}

// Sample compiles the agent of the sample add-on hello and writes its image into a file in dir, with the tag that the
// sample names. It returns the path of the file.
func Sample(ctx context.Context, root, dir string) (string, error) {
	return write(ctx, filepath.Join(dir, "hello-agent.tar"), dir, []image{
		{name: "spokelet/hello-agent", tag: "latest", module: root, source: "./test/hello"},
	})
}

// Workload compiles cmd/workload and writes its image into a file in dir. It returns the path of the file and the name of
// the image.
func Workload(ctx context.Context, root, dir string) (file, named string, err error) {
	w := image{name: "spokelet/workload", tag: "e2e", module: filepath.Join(root, "test", "e2e"), source: "./cmd/workload"}
	file, err = write(ctx, filepath.Join(dir, "workload.tar"), dir, []image{w})
	return file, w.name + ":" + w.tag, err
}

// write compiles the programs of images and writes all of them into one file, as "docker save" does.
func write(ctx context.Context, file, dir string, images []image) (string, error) {
	archive := map[name.Tag]v1.Image{}
	for _, i := range images {
		tag, err := name.NewTag(i.name + ":" + i.tag)
		if err != nil {
			return "", fmt.Errorf("naming an image: %w", err)
		}
		program := filepath.Join(dir, i.tag, path.Base(i.name))
		if err := i.compile(ctx, program); err != nil {
			return "", err
		}
		if archive[tag], err = i.assemble(program); err != nil {
			return "", fmt.Errorf("assembling image %s: %w", tag, err)
		}
	}
	if err := tarball.MultiWriteToFile(file, archive); err != nil {
		return "", fmt.Errorf("writing images to %s: %w", file, err)
	}
	return file, nil
}

// compile compiles the program.
func (i image) compile(ctx context.Context, out string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X "+versionVariable+"="+i.tag, "-o", out, i.source)
	command.Dir, command.Env = i.module, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("compiling %s: %w: %s", i.source, err, stderr.String())
	}
	return nil
}

// assemble makes the image: the program, links to it, an unprivileged user.
func (i image) assemble(program string) (v1.Image, error) {
	layer, err := i.layer(program)
	if err != nil {
		return nil, err
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.User, config.Config.Entrypoint = "65532:65532", []string{"/" + path.Base(i.name)}
	return mutate.ConfigFile(made, config)
}

// layer is the one layer of the image.
func (i image) layer(program string) (v1.Layer, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	entry := path.Base(i.name)
	errs := []error{writer.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: entry, Mode: 0o755, Size: int64(len(content)),
	})}
	_, err = writer.Write(content)
	errs = append(errs, err)
	for _, link := range i.names {
		errs = append(errs, writer.WriteHeader(&tar.Header{
			Typeflag: tar.TypeSymlink, Name: link, Linkname: "/" + entry, Mode: 0o777,
		}))
	}
	if err := errors.Join(append(errs, writer.Close())...); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	})
}
