package oci

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Entry holds what an image has under a path.
type Entry struct {
	// Kind is folder, file, program or link; anything else is written out as the type of its entry in the layer.
	Kind string
	// Mode is the permissions.
	Mode int64
	// Target is the path that a link leads to.
	Target string
	// Size in bytes.
	Size int64
	// Owner is the user and group by number.
	Owner [2]int
}

// Kinds of entries.
const (
	KindFolder  = "folder"
	KindFile    = "file"
	KindProgram = "program"
	KindLink    = "link"
)

// Contents are the entries of an image, by their absolute paths.
type Contents map[string]Entry

// Unpacked returns the bytes that the files take.
func (c Contents) Unpacked() int64 {
	var sum int64
	for _, entry := range c {
		sum += entry.Size
	}
	return sum
}

// Facts are what an image is: what it contains and says about itself.
type Facts struct {
	// Contents are the entries of all layers together.
	Contents Contents
	// Compressed is the bytes of the layers as they travel.
	Compressed int64
	// Digest of the manifest.
	Digest v1.Hash
	// Config is the configuration.
	Config v1.ConfigFile
	// Machines are the processors of the programs, by path; EM_NONE for what is not a program of Linux.
	Machines map[string]elf.Machine
	// Dynamic are the paths of programs that need a loader or libraries, which no image has.
	Dynamic []string
}

// Inspect reads an image: every entry of every layer.
func Inspect(image v1.Image) (Facts, error) {
	facts := Facts{Contents: Contents{}, Machines: map[string]elf.Machine{}}
	var err error
	if facts.Digest, err = image.Digest(); err != nil {
		return Facts{}, fmt.Errorf("digest of the image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return Facts{}, fmt.Errorf("reading the configuration: %w", err)
	}
	facts.Config = *config
	layers, err := image.Layers()
	if err != nil {
		return Facts{}, fmt.Errorf("listing the layers: %w", err)
	}
	for _, layer := range layers {
		if err := facts.addLayer(layer); err != nil {
			return Facts{}, err
		}
	}
	return facts, nil
}

func (f *Facts) addLayer(layer v1.Layer) error {
	size, err := layer.Size()
	if err != nil {
		return fmt.Errorf("size of a layer: %w", err)
	}
	f.Compressed += size
	stream, err := layer.Uncompressed()
	if err != nil {
		return fmt.Errorf("unpacking a layer: %w", err)
	}
	defer stream.Close()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a layer: %w", err)
		}
		if err := f.addEntry(header, reader); err != nil {
			return err
		}
	}
}

func (f *Facts) addEntry(header *tar.Header, content io.Reader) error {
	at := path.Clean("/" + header.Name)
	entry := Entry{
		Kind: fmt.Sprintf("entry of type %q", header.Typeflag), Mode: header.Mode, Target: header.Linkname,
		Size: header.Size, Owner: [2]int{header.Uid, header.Gid},
	}
	switch header.Typeflag {
	case tar.TypeDir:
		entry.Kind = KindFolder
	case tar.TypeSymlink:
		entry.Kind = KindLink
	case tar.TypeReg:
		entry.Kind = KindFile
		data, err := io.ReadAll(content)
		if err != nil {
			return fmt.Errorf("reading %s: %w", at, err)
		}
		if header.Mode&0o111 != 0 {
			entry.Kind = KindProgram
			f.addProgram(at, data)
		}
	}
	f.Contents[at] = entry
	return nil
}

// addProgram notes the processor of a program and whether it stands alone. What is not a program of Linux, such as a
// script, has no processor.
func (f *Facts) addProgram(at string, data []byte) {
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		f.Machines[at] = elf.EM_NONE
		return
	}
	f.Machines[at] = file.Machine
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			f.Dynamic = append(f.Dynamic, at)
			return
		}
	}
}

// Paths returns the paths of all entries but folders, sorted.
func (c Contents) Paths() []string {
	var paths []string
	for at, entry := range c {
		if entry.Kind != KindFolder {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	return paths
}

// folders returns the paths of all folders above the paths, apart from the root.
func folders(paths []string) []string {
	set := map[string]bool{}
	for _, at := range paths {
		for folder := path.Dir(at); folder != "/"; folder = path.Dir(folder) {
			set[folder] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
