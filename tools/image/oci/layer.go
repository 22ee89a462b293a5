package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of an image: a link when Target is set.
type File struct {
	// Path is absolute.
	Path string
	// Content holds what it contains.
	Content []byte
	// Executable reports whether it is a program.
	Executable bool
	// Target is the path that a link leads to; empty for a file.
	Target string
}

// Modes of entries. Everything belongs to root, and the user of the image may read it.
const (
	modeFolder  = 0o755
	modeProgram = 0o755
	modeFile    = 0o644
	modeLink    = 0o777
)

// newLayer returns a layer with the files and the folders above them.
func newLayer(files []File) (v1.Layer, error) {
	data, err := archive(files)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressedCaching,
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("compressing a layer: %w", err)
	}
	return layer, nil
}

// archive writes the files, sorted by their paths, below their folders.
func archive(files []File) ([]byte, error) {
	headers, contents := map[string]*tar.Header{}, map[string][]byte{}
	for _, file := range files {
		name := strings.TrimPrefix(path.Clean(file.Path), "/")
		if headers[name] != nil {
			return nil, fmt.Errorf("file %s is there twice", file.Path)
		}
		headers[name], contents[name] = file.header(name), file.Content
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			headers[folder] = &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: modeFolder}
		}
	}
	sorted := make([]*tar.Header, 0, len(headers))
	for _, header := range headers {
		header.Format, header.ModTime = tar.FormatUSTAR, time.Unix(0, 0)
		sorted = append(sorted, header)
	}
	slices.SortFunc(sorted, func(a, b *tar.Header) int { return cmp.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range sorted {
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing the header of %s: %w", header.Name, err)
		}
		if _, err := writer.Write(contents[header.Name]); err != nil {
			return nil, fmt.Errorf("writing %s: %w", header.Name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("ending a layer: %w", err)
	}
	return out.Bytes(), nil
}

// header describes the file under its name in the layer.
func (f File) header(name string) *tar.Header {
	switch {
	case f.Target != "":
		return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: f.Target, Mode: modeLink}
	case f.Executable:
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: modeProgram, Size: int64(len(f.Content))}
	default:
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: modeFile, Size: int64(len(f.Content))}
	}
}
