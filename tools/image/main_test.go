package main

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/tools/image/build"
)

func TestFlags(t *testing.T) {
	o, err := parse([]string{
		"--source=..", "--output=out", "--version=v1", "--revision=abc", "--created=1795000000", "--repository=example.com/s",
		"--tags=v1,latest", "--platforms=linux/arm64",
	})
	require.NoError(t, err)
	assert.Regexp(t, `^v0\.0\.0-20\d{12}-[0-9a-f]{12}$`, o.RootsVersion)
	o.RootsVersion = ""
	assert.Equal(t, build.Options{
		Source: "..", Output: "out", Version: "v1", Revision: "abc", Created: time.Unix(1795000000, 0).UTC(),
		Repository: "example.com/s", Tags: []string{"v1", "latest"}, Architectures: []string{"arm64"}, Own: runtime.GOARCH,
	}, o)

	o, err = parse(nil)
	require.NoError(t, err)
	require.NoError(t, o.Validate())
	assert.Equal(t, []string{"unversioned"}, o.Tags, "the version is the tag")
	assert.Equal(t, []string{"amd64", "arm64"}, o.Architectures)

	_, err = parse([]string{"--platforms=windows/amd64"})
	require.ErrorContains(t, err, `"windows/amd64" is not among`)
	_, err = parse([]string{"more"})
	require.ErrorContains(t, err, `"more" is no flag`)
}

func TestTheTable(t *testing.T) {
	var out bytes.Buffer
	digest := v1.Hash{Algorithm: "sha256", Hex: "0a"}
	require.NoError(t, table(&out, []build.Row{
		{Image: "spokelet", Platform: "linux/arm64", Compressed: 1 << 20, Unpacked: 45<<20 + 1<<19, Digest: digest},
		{Image: "spokelet", Platform: "all", Digest: digest},
	}))
	assert.Equal(t, `IMAGE     PLATFORM     COMPRESSED  UNPACKED  DIGEST
spokelet  linux/arm64  1.0 MiB     45.5 MiB  sha256:0a
spokelet  all                                sha256:0a
`, out.String())
}
