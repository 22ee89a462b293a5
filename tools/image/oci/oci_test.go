package oci

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// theConfig is that of the images in these tests.
func theConfig() Config {
	return Config{
		Arch: "arm64", User: "65532:65532", Program: "/agent", Labels: map[string]string{"title": "agent"},
		Created: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
	}
}

// theFacts are those of an image that is as expected.
func theFacts() Facts {
	config := theConfig()
	return Facts{
		Contents: Contents{
			"/agent": {Kind: KindProgram, Mode: 0o755, Size: 1000},
			"/work":  {Kind: KindLink, Mode: 0o777, Target: "/agent"},
			"/etc":   {Kind: KindFolder, Mode: 0o755},
			"/etc/a": {Kind: KindFile, Mode: 0o644, Size: 24},
		},
		Config: v1.ConfigFile{
			OS: "linux", Architecture: config.Arch, Created: v1.Time{Time: config.Created},
			Config: v1.Config{User: config.User, Entrypoint: []string{config.Program}, Labels: config.Labels},
		},
		Machines: map[string]elf.Machine{"/agent": elf.EM_AARCH64},
	}
}

func theExpectation() Expectation {
	return Expectation{Config: theConfig(), Names: []string{"/work"}, Files: []string{"/etc/a"}, Limit: 1024}
}

func TestCheckFindsWhatIsNotAsExpected(t *testing.T) {
	tests := map[string]struct {
		change func(*Facts)
		want   string
	}{
		"an image as expected is fine":      {change: func(*Facts) {}},
		"a shell does not belong into it":   {want: "/bin/sh, a program, does not belong", change: add("/bin/sh", Entry{Kind: KindProgram})},
		"nor does any other file":           {want: "/etc/passwd, a file, does not belong", change: add("/etc/passwd", Entry{Kind: KindFile})},
		"nor a folder":                      {want: "/tmp, a folder, does not belong", change: add("/tmp", Entry{Kind: KindFolder})},
		"nor a device":                      {want: "entry of type '3', does not belong", change: add("/dev", Entry{Kind: "entry of type '3'"})},
		"a name leads to the program":       {want: "/work leads to /bin/sh", change: add("/work", Entry{Kind: KindLink, Target: "/bin/sh"})},
		"a name is a link":                  {want: "/work is a program, not a link", change: add("/work", Entry{Kind: KindProgram})},
		"files belong to root":              {want: "of 65532:0", change: add("/etc/a", Entry{Kind: KindFile, Owner: [2]int{65532, 0}})},
		"nobody else may write them":        {want: "mode 0666", change: add("/etc/a", Entry{Kind: KindFile, Mode: 0o666})},
		"no program changes the user":       {want: "mode 04755", change: add("/agent", Entry{Kind: KindProgram, Mode: 0o4755})},
		"a file must be there":              {want: "/etc/a, a file, is missing", change: func(f *Facts) { delete(f.Contents, "/etc/a") }},
		"the program is for the processor":  {want: "no program for arm64", change: machine(elf.EM_X86_64)},
		"a script is no program":            {want: "no program for arm64", change: machine(elf.EM_NONE)},
		"the program needs no loader":       {want: "needs a loader", change: func(f *Facts) { f.Dynamic = []string{"/agent"} }},
		"the image is for the processor":    {want: "for linux/amd64, not for linux/arm64", change: func(f *Facts) { f.Config.Architecture = "amd64" }},
		"it does not run as root":           {want: `runs as ""`, change: func(f *Facts) { f.Config.Config.User = "" }},
		"it starts the program":             {want: "it starts", change: func(f *Facts) { f.Config.Config.Entrypoint = []string{"/work"} }},
		"the program has no arguments":      {want: "it starts", change: func(f *Facts) { f.Config.Config.Cmd = []string{"agent"} }},
		"its labels are those of the plan":  {want: "its labels are", change: func(f *Facts) { f.Config.Config.Labels = nil }},
		"it has the time of the commit":     {want: "it was created at", change: func(f *Facts) { f.Config.Created = v1.Time{} }},
		"it may not be larger than allowed": {want: "over the limit of 0.0 MiB", change: add("/agent", Entry{Kind: KindProgram, Size: 1001})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			facts := theFacts()
			tc.change(&facts)
			err := Check(facts, theExpectation())
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func add(at string, entry Entry) func(*Facts) {
	return func(f *Facts) { f.Contents[at] = entry }
}

func machine(m elf.Machine) func(*Facts) {
	return func(f *Facts) { f.Machines["/agent"] = m }
}

func TestAnImageContainsItsFilesAndNothingElse(t *testing.T) {
	files := []File{
		{Path: "/work", Target: "/agent"},
		{Path: "/agent", Content: []byte("#!/bin/sh\n"), Executable: true},
		{Path: "/etc/ssl/a", Content: []byte("a")},
	}
	image, err := New(theConfig(), Layer{Story: "all", Files: files})
	require.NoError(t, err)
	facts, err := Inspect(image)
	require.NoError(t, err)
	assert.Equal(t, Contents{
		"/agent":     {Kind: KindProgram, Mode: 0o755, Size: 10},
		"/work":      {Kind: KindLink, Mode: 0o777, Target: "/agent"},
		"/etc":       {Kind: KindFolder, Mode: 0o755},
		"/etc/ssl":   {Kind: KindFolder, Mode: 0o755},
		"/etc/ssl/a": {Kind: KindFile, Mode: 0o644, Size: 1},
	}, facts.Contents)
	assert.Equal(t, []string{"/agent", "/etc/ssl/a", "/work"}, facts.Contents.Paths())
	assert.Equal(t, map[string]elf.Machine{"/agent": elf.EM_NONE}, facts.Machines)
	assert.EqualValues(t, 11, facts.Contents.Unpacked())
	assert.Positive(t, facts.Compressed)

	files[0], files[2] = files[2], files[0]
	again, err := New(theConfig(), Layer{Story: "all", Files: files})
	require.NoError(t, err)
	digest, err := again.Digest()
	require.NoError(t, err)
	assert.Equal(t, facts.Digest, digest, "the order in which files are given does not matter")

	_, err = New(theConfig(), Layer{Files: append(files, File{Path: "/work"})})
	require.ErrorContains(t, err, "file /work is there twice")
}

func TestAProgramWithLibrariesIsNoticed(t *testing.T) {
	facts := Facts{Machines: map[string]elf.Machine{}}
	facts.addProgram("/dynamic", elfWith(elf.PT_INTERP))
	facts.addProgram("/static", elfWith(elf.PT_LOAD))
	assert.Equal(t, []string{"/dynamic"}, facts.Dynamic)
	assert.Equal(t, map[string]elf.Machine{"/dynamic": elf.EM_AARCH64, "/static": elf.EM_AARCH64}, facts.Machines)
}

// elfWith returns the least program of Linux for arm64 with one part.
func elfWith(part elf.ProgType) []byte {
	data := make([]byte, 64+56)
	copy(data, elf.ELFMAG)
	data[elf.EI_CLASS], data[elf.EI_DATA], data[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	data[16], data[18], data[20] = byte(elf.ET_EXEC), byte(elf.EM_AARCH64), 1
	data[32], data[52], data[54], data[56], data[58] = 64, 64, 56, 1, 64
	data[64] = byte(part)
	return data
}

func TestAnArchiveNeedsNamesThatAreOnes(t *testing.T) {
	image, err := New(theConfig())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "image.tar")
	require.ErrorContains(t, WriteArchive(file, image, []string{"Not A Name"}), "the name of an image")
	assert.NoFileExists(t, file)
	require.NoError(t, WriteArchive(file, image, []string{"spokelet/agent:v1", "spokelet/agent:latest"}))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode())
}
