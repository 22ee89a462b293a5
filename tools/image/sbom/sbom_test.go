package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func theImage() Image {
	return Image{
		Name: "spokelet", Description: "an agent", Version: "v1.2.3", Revision: "0123abcd", License: "Apache-2.0",
		Platform: "linux/arm64", Created: time.Date(2026, 11, 22, 13, 0, 0, 0, time.FixedZone("", 3600)),
		Program: Program{Path: "/spokelet", Content: []byte("program"), Info: &debug.BuildInfo{
			GoVersion: "go1.26.8 X:jsonv2", Path: "github.com/spokelet/spokelet/cmd/spokelet",
			Main: debug.Module{Path: "github.com/spokelet/spokelet", Version: "(devel)"},
			Deps: []*debug.Module{
				{Path: "k8s.io/api", Version: "v0.35.4"},
				{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/Fork", Version: "v1.0.1"}},
				{Path: "example.com/plain", Version: "v4.12.0+incompatible"},
			},
		}},
		Certificates: Certificates{
			Path: "/etc/ssl/certs/ca-certificates.crt", Content: []byte("roots"), Module: "example.com/x/roots", Version: "v0.1.0",
		},
	}
}

// read writes and reads the document of an image.
func read(t *testing.T, image Image) (cdx.BOM, []byte) {
	t.Helper()
	data, err := Write(image)
	require.NoError(t, err)
	var document cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&document))
	return document, data
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestADocumentHasAllThatIsInTheImage(t *testing.T) {
	document, _ := read(t, theImage())
	assert.Equal(t, cdx.SpecVersion1_6, document.SpecVersion)
	assert.Equal(t, "2026-11-22T12:00:00Z", document.Metadata.Timestamp)
	image := document.Metadata.Component
	assert.Equal(t, cdx.ComponentTypeContainer, image.Type)
	assert.Equal(t, []string{"spokelet", "v1.2.3"}, []string{image.Name, image.Version})
	assert.Equal(t, &[]cdx.Property{
		{Name: "spokelet:platform", Value: "linux/arm64"}, {Name: "spokelet:revision", Value: "0123abcd"},
	}, image.Properties)

	type summary struct{ kind, name, version, address, digest string }
	var got []summary
	for _, c := range *document.Components {
		s := summary{kind: string(c.Type), name: c.Name, version: c.Version, address: c.PackageURL}
		if c.Hashes != nil {
			s.digest = (*c.Hashes)[0].Value
		}
		got = append(got, s)
	}
	assert.Equal(t, []summary{
		{
			"application", "github.com/spokelet/spokelet/cmd/spokelet", "v1.2.3",
			"pkg:golang/github.com/spokelet/spokelet@v1.2.3#cmd/spokelet", digest("program"),
		},
		{kind: "file", name: "ca-certificates.crt", digest: digest("roots")},
		{kind: "library", name: "example.com/x/roots", version: "v0.1.0", address: "pkg:golang/example.com/x/roots@v0.1.0"},
		{kind: "library", name: "example.com/Fork", version: "v1.0.1", address: "pkg:golang/example.com/Fork@v1.0.1"},
		{
			kind: "library", name: "example.com/plain", version: "v4.12.0+incompatible",
			address: "pkg:golang/example.com/plain@v4.12.0%2Bincompatible",
		},
		{kind: "library", name: "k8s.io/api", version: "v0.35.4", address: "pkg:golang/k8s.io/api@v0.35.4"},
		{kind: "library", name: "stdlib", version: "1.26.8", address: "pkg:golang/stdlib@1.26.8"},
	}, got)
}

func TestEveryReferenceLeadsToAComponent(t *testing.T) {
	document, _ := read(t, theImage())
	known := map[string]bool{document.Metadata.Component.BOMRef: true}
	for _, component := range *document.Components {
		assert.False(t, known[component.BOMRef], "%s is there once", component.BOMRef)
		known[component.BOMRef] = true
	}
	reached := map[string]bool{document.Metadata.Component.BOMRef: true}
	for _, from := range *document.Dependencies {
		assert.True(t, known[from.Ref], from.Ref)
		for _, to := range *from.Dependencies {
			assert.True(t, known[to], to)
			reached[to] = true
		}
	}
	assert.Equal(t, known, reached, "nothing is in the image without a reason")
}

func TestDocumentsOfTheSameImageAreTheSame(t *testing.T) {
	first, data := read(t, theImage())
	_, again := read(t, theImage())
	assert.Equal(t, string(data), string(again))
	other := theImage()
	other.Program.Content = []byte("another program")
	second, _ := read(t, other)
	assert.NotEqual(t, first.SerialNumber, second.SerialNumber)
	assert.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, first.SerialNumber)
}

func TestAProgramWithoutVersionsIsRefused(t *testing.T) {
	image := theImage()
	image.Program.Info.Deps = []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "../a"}},
	}
	_, err := Write(image)
	require.ErrorContains(t, err, "module ../a in program github.com/spokelet/spokelet/cmd/spokelet has no version")
	image.Program.Info.GoVersion = "devel"
	_, err = Write(image)
	require.ErrorContains(t, err, `"devel", which is no release of Go`)
}
