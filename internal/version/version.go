// Package version has the version of the build.
package version

import (
	"runtime/debug"
	"sync"
)

// version is set by the linker, which can set nothing but a variable; see the Makefile.
var version string

// resolved is the version, which is decoded from the program once.
var resolved = sync.OnceValue(resolve)

// String returns the version that the build was stamped with, the version of the module when it was built from a
// module cache, and "unversioned" otherwise.
func String() string { return resolved() }

func resolve() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unversioned"
}
