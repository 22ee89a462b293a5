package build

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/spokelet/spokelet/tools/image/compile"
	"github.com/spokelet/spokelet/tools/image/oci"
	"github.com/spokelet/spokelet/tools/image/plan"
	"github.com/spokelet/spokelet/tools/image/roots"
	"github.com/spokelet/spokelet/tools/image/sbom"
)

// license is the SPDX identifier of the license of our programs.
const license = "Apache-2.0"

// Options are what to build, and out of what.
type Options struct {
	// Source is the top of the Go module with the programs.
	Source string
	// Output is the folder for everything that is written.
	Output string
	// Version of the images.
	Version string
	// Revision is the commit.
	Revision string
	// Created is the time of the commit.
	Created time.Time
	// Repository stands before the names of images in archives, such as registry.example.com/spokelet.
	Repository string
	// Tags are the tags in archives; the first is the one in the layouts.
	Tags []string
	// Architectures are those to build for, as Go calls them.
	Architectures []string
	// Own is the architecture that archives are for. Without it among Architectures there are no archives.
	Own string
	// RootsVersion is the version of the Go module of the root certificates.
	RootsVersion string
}

// Validate returns what is missing or makes no sense.
func (o Options) Validate() error {
	var wrong []error
	for name, value := range map[string]string{
		"version": o.Version, "revision": o.Revision, "repository": o.Repository, "output": o.Output,
	} {
		if value == "" {
			wrong = append(wrong, fmt.Errorf("--%s is empty", name))
		}
	}
	if len(o.Tags) == 0 {
		wrong = append(wrong, errors.New("--tags is empty: an image has at least one"))
	}
	if len(o.Architectures) == 0 {
		wrong = append(wrong, errors.New("--platforms is empty: an image has at least one"))
	}
	for _, arch := range o.Architectures {
		if arch != "amd64" && arch != "arm64" {
			wrong = append(wrong, fmt.Errorf("--platforms: linux/%s is not among linux/amd64 and linux/arm64", arch))
		}
	}
	return errors.Join(wrong...)
}

// Row is one line of the table about what was built.
type Row struct {
	// Image and platform; an index is for all platforms.
	Image, Platform string
	// Compressed and Unpacked are sizes; 0 for an index.
	Compressed, Unpacked oci.Size
	// Digest of the manifest.
	Digest v1.Hash
}

// Images builds the images and returns the lines of the table about them. It writes, for each image, the folder
// <name> with an OCI layout, a file <name>-linux-<arch>.cdx.json for each platform, and the archive <name>.tar for this
// machine. An image that is not as planned, or too large, is an error, and is not written.
func Images(ctx context.Context, options Options, images []plan.Image) ([]Row, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	certificates, err := roots.PEM()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "images-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // temporary files that stay harm nobody
	b := builder{Options: options, certificates: certificates, work: work}
	if err := os.MkdirAll(options.Output, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for images: %w", err)
	}
	var rows []Row
	for _, image := range images {
		made, err := b.build(ctx, image)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", image.Name, err)
		}
		rows = append(rows, made...)
	}
	return rows, nil
}

// builder has what all images share.
type builder struct {
	Options

	certificates []byte
	work         string
}

// build makes one image for all platforms and writes it.
func (b builder) build(ctx context.Context, image plan.Image) ([]Row, error) {
	var rows []Row
	var platforms []oci.Platform
	for _, arch := range b.Architectures {
		platform, row, err := b.platform(ctx, image, arch)
		if err != nil {
			return nil, fmt.Errorf("linux/%s: %w", arch, err)
		}
		platforms, rows = append(platforms, platform), append(rows, row)
	}
	index, err := oci.Index(platforms, image.Labels(b.Version, b.Revision))
	if err != nil {
		return nil, err
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, fmt.Errorf("digest of the index: %w", err)
	}
	if err := b.write(image, index, platforms); err != nil {
		return nil, err
	}
	return append(rows, Row{Image: image.Name, Platform: "all", Digest: digest}), nil
}

// platform makes and checks the image for one architecture, and its SBOM.
func (b builder) platform(ctx context.Context, image plan.Image, arch string) (oci.Platform, Row, error) {
	none := func(err error) (oci.Platform, Row, error) { return oci.Platform{}, Row{}, err }
	file := filepath.Join(b.work, image.Name+"-"+arch)
	program := compile.Program{
		Dir: b.Source, Package: image.Package, Flags: image.Flags(b.Version), Arch: arch,
	}
	if err := program.Build(ctx, file); err != nil {
		return none(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return none(fmt.Errorf("reading the program: %w", err))
	}
	config := oci.Config{
		Arch: arch, User: plan.User, Program: image.Program(), Labels: image.Labels(b.Version, b.Revision),
		Created: b.Created,
	}
	made, err := oci.New(config, b.layers(image, content)...)
	if err != nil {
		return none(err)
	}
	facts, err := oci.Inspect(made)
	if err != nil {
		return none(err)
	}
	if err := oci.Check(facts, oci.Expectation{
		Config: config, Names: image.Names, Files: []string{plan.Certificates}, Limit: image.Limit,
	}); err != nil {
		return none(fmt.Errorf("it is not as planned: %w", err))
	}
	document, err := b.document(image, arch, content)
	if err != nil {
		return none(err)
	}
	return oci.Platform{Arch: arch, Image: made, SBOM: document, SBOMName: sbomName(image, arch)}, Row{
		Image: image.Name, Platform: "linux/" + arch, Compressed: oci.Size(facts.Compressed),
		Unpacked: oci.Size(facts.Contents.Unpacked()), Digest: facts.Digest,
	}, nil
}

// layers returns the layers of an image: the certificates first, because they change least.
func (b builder) layers(image plan.Image, program []byte) []oci.Layer {
	files := []oci.File{{Path: image.Program(), Content: program, Executable: true}}
	for _, name := range image.Names {
		files = append(files, oci.File{Path: name, Target: image.Program()})
	}
	return []oci.Layer{
		{Story: "root certificates of Mozilla", Files: []oci.File{{Path: plan.Certificates, Content: b.certificates}}},
		{Story: "program " + image.Package, Files: files},
	}
}

// document returns the SBOM of an image for one architecture.
func (b builder) document(image plan.Image, arch string, program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("reading the modules in the program: %w", err)
	}
	return sbom.Write(sbom.Image{
		Name: image.Name, Description: image.Description, Version: b.Version, Revision: b.Revision, License: license,
		Platform: "linux/" + arch, Created: b.Created,
		Program: sbom.Program{Path: image.Program(), Content: program, Info: info},
		Certificates: sbom.Certificates{
			Path: plan.Certificates, Content: b.certificates, Module: roots.Module, Version: b.RootsVersion,
		},
	})
}

// write writes the image in both forms, and the SBOMs.
func (b builder) write(image plan.Image, index v1.ImageIndex, platforms []oci.Platform) error {
	if err := oci.WriteLayout(filepath.Join(b.Output, image.Name), index, b.Tags[0]); err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := os.WriteFile(filepath.Join(b.Output, platform.SBOMName), platform.SBOM, 0o644); err != nil {
			return fmt.Errorf("writing an SBOM: %w", err)
		}
	}
	at := slices.IndexFunc(platforms, func(p oci.Platform) bool { return p.Arch == b.Own })
	if at < 0 {
		return nil
	}
	var names []string
	for _, tag := range b.Tags {
		names = append(names, b.Repository+"/"+image.Name+":"+tag)
	}
	return oci.WriteArchive(filepath.Join(b.Output, image.Name+".tar"), platforms[at].Image, names)
}

// sbomName is the name of the file with the SBOM.
func sbomName(image plan.Image, arch string) string {
	return image.Name + "-linux-" + arch + ".cdx.json"
}
