// Package version has the version of the build.
package version

import (
	"runtime/debug"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// version is set by the linker, which can set nothing but a variable; see the Makefile.
var version string

// resolved is the version, which is decoded from the program once.
var resolved = sync.OnceValue(resolve)

// String returns the version that the build was stamped with, the version of the module when it was built from a
// module cache, and "unversioned" otherwise.
func String() string { return resolved() }

// Label returns the version as the value of a label of Kubernetes, in which a character that a label does not take is a
// dot.
func Label() string { return label(String()) }

// label returns a text as the value of a label.
func label(text string) string {
	const most = 63
	text = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '.'
	}, text)
	if len(text) > most {
		text = text[:most]
	}
	return strings.Trim(text, "-_.")
}

func resolve() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unversioned"
}
