package build

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/tools/image/oci"
	"github.com/spokelet/spokelet/tools/image/plan"
)

// images are the images that the project ships, each with a small program in the place of its own.
func images() []plan.Image {
	all := plan.All()
	for n := range all {
		all[n].Package = "."
	}
	return all
}

// options builds from a module in a folder of its own, into another.
func options(t *testing.T) Options {
	t.Helper()
	source := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":  "module example.com/tiny\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { println(\"tiny\") }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(source, file), []byte(text), 0o600))
	}
	return Options{
		Source: source, Output: filepath.Join(t.TempDir(), "images"), Version: "v1.2.3", Revision: "0123abcd",
		Created: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Repository: "spokelet", Tags: []string{"v1.2.3", "latest"},
		Architectures: []string{"amd64", "arm64"}, Own: "amd64", RootsVersion: "v0.0.1",
	}
}

// files returns the contents of all files below a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, folder)] = string(data)
		return err
	}))
	return found
}

// open returns the index in an OCI layout.
func open(t *testing.T, folder string) v1.ImageIndex {
	t.Helper()
	all, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	manifest, err := all.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1, "tools take the only entry")
	assert.Equal(t, "v1.2.3", manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return index
}

// All tests look at the same images, because compiling takes longest.
func TestImages(t *testing.T) {
	o := options(t)
	rows, err := Images(t.Context(), o, images())
	require.NoError(t, err)

	t.Run("the same input makes the same bytes, in another folder and with other settings", func(t *testing.T) {
		again := options(t)
		t.Setenv("GOFLAGS", "-tags=other")
		t.Setenv("CGO_ENABLED", "1")
		t.Setenv("TMPDIR", t.TempDir())
		repeated, err := Images(t.Context(), again, images())
		require.NoError(t, err)
		assert.Equal(t, rows, repeated)
		first, second := files(t, o.Output), files(t, again.Output)
		assert.Len(t, second, len(first))
		for path, content := range first {
			if second[path] != content {
				t.Errorf("%s differs", path)
			}
		}
	})
	t.Run("an image has the program, certificates and names, and nothing else", func(t *testing.T) { checkContents(t, o) })
	t.Run("its configuration is as planned", func(t *testing.T) { checkConfigs(t, o) })
	t.Run("the table has all platforms of all images", func(t *testing.T) { checkRows(t, o, rows) })
	t.Run("a registry that got the layout has images and SBOMs", func(t *testing.T) { checkRegistry(t, o) })
	t.Run("an archive has the image of this machine under all names", func(t *testing.T) { checkArchive(t, o) })
}

func checkContents(t *testing.T, o Options) {
	t.Helper()
	certificates := []string{"/etc/ssl/certs/ca-certificates.crt"}
	for image, want := range map[string][]string{
		"spokelet":     append(certificates, "/registration", "/registration-operator", "/spokelet", "/work"),
		"spokelet-hub": append(certificates, "/spokelet-hub"),
		"hello-agent":  append(certificates, "/hello-agent"),
	} {
		for arch, facts := range inspect(t, o, image) {
			assert.Equal(t, want, facts.Contents.Paths(), "%s %s", image, arch)
			for path, entry := range facts.Contents {
				program := path == "/"+image
				assert.Equal(t, program, entry.Kind == oci.KindProgram, "%s: the only program is ours", path)
				if entry.Kind == oci.KindLink {
					assert.Equal(t, "/spokelet", entry.Target, path)
				}
				assert.Equal(t, [2]int{0, 0}, entry.Owner, path)
			}
		}
	}
}

// inspect reads an image for each architecture from its layout.
func inspect(t *testing.T, o Options, image string) map[string]oci.Facts {
	t.Helper()
	index := open(t, filepath.Join(o.Output, image))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	found := map[string]oci.Facts{}
	for _, entry := range manifest.Manifests {
		if entry.Platform.OS == "unknown" {
			continue
		}
		made, err := index.Image(entry.Digest)
		require.NoError(t, err)
		require.NoError(t, validate.Image(made))
		facts, err := oci.Inspect(made)
		require.NoError(t, err)
		assert.Equal(t, "linux", entry.Platform.OS)
		found[entry.Platform.Architecture] = facts
	}
	assert.Len(t, found, 2)
	return found
}

func checkConfigs(t *testing.T, o Options) {
	t.Helper()
	for arch, facts := range inspect(t, o, "spokelet") {
		assert.Equal(t, arch, facts.Config.Architecture)
		assert.Equal(t, "linux", facts.Config.OS)
		assert.Equal(t, o.Created, facts.Config.Created.Time)
		assert.Equal(t, v1.Config{
			User: "65532:65532", Entrypoint: []string{"/spokelet"}, WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":       "spokelet",
				"org.opencontainers.image.description": "Spoke side of add-on management for Kubernetes fleets",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     "v1.2.3",
				"org.opencontainers.image.revision":    "0123abcd",
			},
		}, facts.Config.Config)
	}
}

func checkRows(t *testing.T, o Options, rows []Row) {
	t.Helper()
	var lines []string
	for _, row := range rows {
		lines = append(lines, row.Image+" "+row.Platform)
		if row.Platform == "all" {
			digest, err := open(t, filepath.Join(o.Output, row.Image)).Digest()
			require.NoError(t, err)
			assert.Equal(t, digest, row.Digest)
			assert.Zero(t, row.Unpacked)
			continue
		}
		facts := inspect(t, o, row.Image)[strings.TrimPrefix(row.Platform, "linux/")]
		assert.Equal(t, facts.Digest, row.Digest)
		assert.EqualValues(t, facts.Compressed, row.Compressed)
		assert.Greater(t, row.Unpacked, row.Compressed)
	}
	assert.Equal(t, []string{
		"spokelet linux/amd64", "spokelet linux/arm64", "spokelet all",
		"spokelet-hub linux/amd64", "spokelet-hub linux/arm64", "spokelet-hub all",
		"hello-agent linux/amd64", "hello-agent linux/arm64", "hello-agent all",
	}, lines)
}

func checkRegistry(t *testing.T, o Options) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	index := open(t, filepath.Join(o.Output, "spokelet"))
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/spokelet/spokelet:v1.2.3")
	require.NoError(t, err)
	require.NoError(t, remote.WriteIndex(tag, index))
	for _, arch := range o.Architectures {
		image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		require.NoError(t, err)
		digest, err := image.Digest()
		require.NoError(t, err)
		referrers, err := remote.Referrers(tag.Digest(digest.String()))
		require.NoError(t, err)
		list, err := referrers.IndexManifest()
		require.NoError(t, err)
		require.Len(t, list.Manifests, 1, "the SBOM of linux/%s", arch)
		attached, err := remote.Image(tag.Digest(list.Manifests[0].Digest.String()))
		require.NoError(t, err)
		checkAttached(t, attached, filepath.Join(o.Output, "spokelet-linux-"+arch+".cdx.json"))
	}
}

// checkAttached checks an artifact: its type, and that it has the bytes of the file.
func checkAttached(t *testing.T, artifact v1.Image, file string) {
	t.Helper()
	raw, err := artifact.RawManifest()
	require.NoError(t, err)
	var manifest struct {
		ArtifactType string `json:"artifactType"`
		Config       v1.Descriptor
	}
	require.NoError(t, json.Unmarshal(raw, &manifest))
	assert.Equal(t, "application/vnd.cyclonedx+json", manifest.ArtifactType)
	assert.EqualValues(t, "application/vnd.oci.empty.v1+json", manifest.Config.MediaType)
	layers, err := artifact.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	kind, err := layers[0].MediaType()
	require.NoError(t, err)
	assert.EqualValues(t, "application/vnd.cyclonedx+json", kind)
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	digest, err := layers[0].Digest()
	require.NoError(t, err)
	expected, _, err := v1.SHA256(strings.NewReader(string(want)))
	require.NoError(t, err)
	assert.Equal(t, expected, digest, "it is the file beside the layout")
}

func checkArchive(t *testing.T, o Options) {
	t.Helper()
	for _, text := range []string{"spokelet/hello-agent:v1.2.3", "spokelet/hello-agent:latest"} {
		tag, err := name.NewTag(text)
		require.NoError(t, err)
		image, err := tarball.ImageFromPath(filepath.Join(o.Output, "hello-agent.tar"), &tag)
		require.NoError(t, err)
		facts, err := oci.Inspect(image)
		require.NoError(t, err)
		assert.Equal(t, "amd64", facts.Config.Architecture)
		assert.Equal(t, []string{"/etc/ssl/certs/ca-certificates.crt", "/hello-agent"}, facts.Contents.Paths())
	}
}

func TestAnImageThatIsTooLargeIsNotWritten(t *testing.T) {
	o := options(t)
	o.Architectures = []string{"amd64"}
	large := images()[:1]
	large[0].Limit = 1 << 20
	_, err := Images(t.Context(), o, large)
	require.ErrorContains(t, err, "image spokelet: linux/amd64: it is not as planned: it takes 1.")
	require.ErrorContains(t, err, "over the limit of 1.0 MiB")
	assert.Empty(t, files(t, o.Output))
}

func TestAProgramThatDoesNotCompileIsNamed(t *testing.T) {
	o := options(t)
	broken := images()[:1]
	broken[0].Package = "./missing"
	_, err := Images(t.Context(), o, broken)
	require.ErrorContains(t, err, "image spokelet: linux/amd64: compiling ./missing for linux/amd64")
	require.ErrorContains(t, err, "directory not found", "it has what the compiler printed")
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"--version is empty":       func(o *Options) { o.Version = "" },
		"--revision is empty":      func(o *Options) { o.Revision = "" },
		"--repository is empty":    func(o *Options) { o.Repository = "" },
		"--output is empty":        func(o *Options) { o.Output = "" },
		"--tags is empty":          func(o *Options) { o.Tags = nil },
		"--platforms is empty":     func(o *Options) { o.Architectures = nil },
		"linux/s390x is not among": func(o *Options) { o.Architectures = []string{"s390x"} },
	} {
		o := options(t)
		change(&o)
		_, err := Images(t.Context(), o, nil)
		require.ErrorContains(t, err, want)
	}
}
