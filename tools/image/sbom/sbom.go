package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
)

// Image is an image for one platform, as far as its SBOM describes it.
type Image struct {
	// Name of the image.
	Name string
	// Description is one line about it.
	Description string
	// Version of the image and of the program.
	Version string
	// Revision is the commit that it was built from.
	Revision string
	// License is the SPDX identifier of the license of the program.
	License string
	// Platform is system and architecture, such as linux/arm64.
	Platform string
	// Created is the time of the commit.
	Created time.Time
	// Program is the program in it.
	Program Program
	// Certificates are the root certificates in it.
	Certificates Certificates
}

// Program is a program that Go built.
type Program struct {
	// Path in the image.
	Path string
	// Content is the program itself.
	Content []byte
	// Info holds what the linker left in it.
	Info *debug.BuildInfo
}

// Certificates are a file of root certificates, and the Go module that it was made from.
type Certificates struct {
	// Path in the image.
	Path string
	// Content is the file itself.
	Content []byte
	// Module and Version of the Go module.
	Module, Version string
}

// Write returns the document. The same image leads to the same bytes.
func Write(image Image) ([]byte, error) {
	document := cdx.NewBOM()
	// Tools that store documents know by the number whether they have this one.
	digest := sha256.Sum256(image.Program.Content)
	identity := slices.Concat([]byte(image.Name+image.Version), digest[:])
	document.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, identity).URN()
	container := image.component()
	document.Metadata = &cdx.Metadata{
		Timestamp: image.Created.UTC().Format(time.RFC3339), Component: &container,
	}
	program, certificates := image.program(), image.certificates()
	modules, err := linked(image.Program.Info)
	if err != nil {
		return nil, err
	}
	source := library(image.Certificates.Module, image.Certificates.Version)
	components := append([]cdx.Component{program, certificates, source}, modules...)
	document.Components = &components
	document.Dependencies = &[]cdx.Dependency{
		{Ref: container.BOMRef, Dependencies: &[]string{program.BOMRef, certificates.BOMRef}},
		{Ref: program.BOMRef, Dependencies: references(modules)},
		{Ref: certificates.BOMRef, Dependencies: &[]string{source.BOMRef}},
	}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(document, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the SBOM of %s: %w", image.Name, err)
	}
	return out.Bytes(), nil
}

// component is the image itself.
func (i Image) component() cdx.Component {
	return cdx.Component{
		BOMRef: "image", Type: cdx.ComponentTypeContainer, Name: i.Name, Version: i.Version, Description: i.Description,
		Properties: &[]cdx.Property{
			{Name: "spokelet:platform", Value: i.Platform}, {Name: "spokelet:revision", Value: i.Revision},
		},
	}
}

// program is the program in the image. It is called what it is in Go, as scanners know it.
func (i Image) program() cdx.Component {
	main := i.Program.Info.Main.Path
	folder := strings.TrimPrefix(strings.TrimPrefix(i.Program.Info.Path, main), "/")
	return cdx.Component{
		BOMRef: "program", Type: cdx.ComponentTypeApplication, Name: i.Program.Info.Path, Version: i.Version,
		PackageURL: packageURL(main, i.Version, folder), Hashes: hashes(i.Program.Content),
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: i.License}}},
		Properties: &[]cdx.Property{{Name: "spokelet:path", Value: i.Program.Path}},
	}
}

// certificates is the file of root certificates.
func (i Image) certificates() cdx.Component {
	return cdx.Component{
		BOMRef: "certificates", Type: cdx.ComponentTypeFile, Name: path.Base(i.Certificates.Path),
		Description: "Root certificates of Mozilla for servers", Hashes: hashes(i.Certificates.Content),
		Properties: &[]cdx.Property{{Name: "spokelet:path", Value: i.Certificates.Path}},
	}
}

// linked returns the Go release, as the module stdlib under which databases of vulnerabilities list it, and the
// modules in the program, sorted.
func linked(info *debug.BuildInfo) ([]cdx.Component, error) {
	release, ok := strings.CutPrefix(info.GoVersion, "go")
	if !ok {
		return nil, fmt.Errorf("program %s was built with %q, which is no release of Go", info.Path, info.GoVersion)
	}
	// A release may be followed by words about its build.
	release, _, _ = strings.Cut(release, " ")
	components := []cdx.Component{library("stdlib", release)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if module.Version == "" {
			return nil, fmt.Errorf("module %s in program %s has no version: it comes from a folder", module.Path, info.Path)
		}
		components = append(components, library(module.Path, module.Version))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	return components, nil
}

// library is a Go module in a version.
func library(module, version string) cdx.Component {
	address := packageURL(module, version, "")
	return cdx.Component{
		BOMRef: address, Type: cdx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: address,
	}
}

// packageURL is the address of a Go module, or of a folder in it.
func packageURL(module, version, folder string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil,
		folder).ToString()
}

func hashes(data []byte) *[]cdx.Hash {
	digest := sha256.Sum256(data)
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}
}

func references(components []cdx.Component) *[]string {
	all := make([]string, len(components))
	for n, component := range components {
		all[n] = component.BOMRef
	}
	return &all
}
