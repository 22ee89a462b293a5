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
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Product builds our images, and that of the sample add-on, from the source in root by the program of "make image",
// with tag as their version. It returns the paths of the files in dir. The sample names its image with tag latest.
func Product(ctx context.Context, root, dir, tag string) ([]string, error) {
	out := filepath.Join(dir, tag)
	command := exec.CommandContext(ctx, "go", "run", "./image", "--source", root, "--output", out, "--version", tag,
		"--repository", "spokelet", "--tags", tag+",latest", "--platforms", "linux/"+runtime.GOARCH)
	command.Dir = filepath.Join(root, "tools")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building images with tag %s: %w: %s", tag, err, output)
	}
	var files []string
	for _, name := range []string{"spokelet", "spokelet-hub", "hello-agent"} {
		files = append(files, filepath.Join(out, name+".tar"))
	}
	return files, nil
}

// Program compiles the program in folder cmd/NAME of the end-to-end suites and writes its image into a file in dir. It
// returns the path of the file and the name of the image.
func Program(ctx context.Context, root, dir, program string) (file, image string, err error) {
	folder, image := filepath.Join(root, "test", "e2e"), "spokelet/"+program+":e2e"
	file, err = compile(ctx, folder, "./cmd/"+program, filepath.Join(dir, program), image)
	return file, image, err
}

// Samples compiles the programs of the sample add-ons and writes their images into files in dir. It returns the paths
// of the files, and those of the programs that run on the hub by the name of their add-on. The agent of weather is
// there only under the name of a mirror.
func Samples(ctx context.Context, root, dir string) (files []string, programs map[string]string, err error) {
	programs = map[string]string{}
	for _, sample := range []struct{ name, manager, agent string }{
		{"weather", "registry.example.com/weather/manager:v1", "mirror.example.com/stations/agent:v1"},
		{"uptime", "registry.example.com/uptime/manager:v1", "registry.example.com/uptime/agent:v1"},
	} {
		source, out := filepath.Join(root, "test", "samples", sample.name), filepath.Join(dir, sample.name)
		programs[sample.name] = filepath.Join(out, "manager")
		manager, err := compile(ctx, source, ".", programs[sample.name], sample.manager)
		if err != nil {
			return nil, nil, err
		}
		agent, err := compile(ctx, source, "./agent", filepath.Join(out, "agent"), sample.agent)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, manager, agent)
	}
	return files, programs, nil
}

// compile compiles a package of the module in source to a program, and writes its image into the file that it returns.
func compile(ctx context.Context, source, pkg, program, image string) (file string, err error) {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program,
		pkg)
	command.Dir, command.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s in %s: %w: %s", pkg, source, err, output)
	}
	made, err := assemble(program)
	if err != nil {
		return "", fmt.Errorf("assembling image %s: %w", image, err)
	}
	tag, err := name.NewTag(image)
	if err != nil {
		return "", fmt.Errorf("naming an image: %w", err)
	}
	file = program + ".tar"
	if err := tarball.WriteToFile(file, tag, made); err != nil {
		return "", fmt.Errorf("writing image %s: %w", image, err)
	}
	return file, nil
}

// assemble makes an image of a program for an unprivileged user.
func assemble(program string) (v1.Image, error) {
	layer, err := layerOf(program)
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
	config.Config.User, config.Config.Entrypoint = "65532:65532", []string{"/" + filepath.Base(program)}
	return mutate.ConfigFile(made, config)
}

// layerOf is the layer with a program.
func layerOf(program string) (v1.Layer, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: filepath.Base(program), Mode: 0o755, Size: int64(len(content)),
	}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	_, err = writer.Write(content)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	})
}
