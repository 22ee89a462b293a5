package show

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/internal/message"
)

// Terminal is where an answer is written, and what it can show.
type Terminal struct {
	Out io.Writer
	// Width is how many characters a line has.
	Width int
	// Color reports whether colours are shown, and ASCII that only ASCII is.
	Color, ASCII bool
	// Screen reports that it is a terminal and not a file or a pipe.
	Screen bool
	// Bundle reports that answers are about a bundle, and not about the hub of the kubeconfig.
	Bundle bool
	// Now is the time from which ages are counted.
	Now time.Time
}

const (
	// pipeWidth is the width of a line where no terminal says another one.
	pipeWidth = 120
	// leastWidth is the least width that a table is made for.
	leastWidth = 60
)

// New returns the terminal that a writer is, by the environment of the process.
func New(out io.Writer, environment func(string) string, now time.Time) Terminal {
	t := Terminal{Out: out, Width: pipeWidth, Now: now}
	t.Screen = IsTerminal(out)
	if file, is := out.(*os.File); is && t.Screen {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			t.Width = width
		}
	}
	if columns, err := strconv.Atoi(environment("COLUMNS")); err == nil && columns > 0 {
		t.Width = columns
	}
	t.Width = max(t.Width, leastWidth)
	t.Color = t.Screen && environment("NO_COLOR") == "" && environment("TERM") != "dumb"
	t.ASCII = isASCII(cmp.Or(environment("LC_ALL"), environment("LC_CTYPE"), environment("LANG")))
	return t
}

// isASCII reports whether only ASCII is shown in a locale: that of C, and one that names another encoding than UTF-8.
// Without a locale, as in most containers, UTF-8 is written, as kubectl and all programs in Go do.
func isASCII(locale string) bool {
	name, encoding, _ := strings.Cut(locale, ".")
	encoding, _, _ = strings.Cut(strings.ToLower(encoding), "@")
	if encoding == "" {
		return name == "C" || name == "POSIX"
	}
	return encoding != "utf-8" && encoding != "utf8"
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// Again makes place for an answer that replaces the one before it: on a screen it is cleared, elsewhere a line is left
// out.
func (t Terminal) Again() {
	between := "\n"
	if t.Screen {
		between = "\x1b[H\x1b[2J"
	}
	_, _ = io.WriteString(t.Out, between) // The answer itself meets the same error.
}

// Colours by what they mean.
const (
	bad     = "\x1b[31m"
	dubious = "\x1b[33m"
	good    = "\x1b[32m"
	strong  = "\x1b[1m"
	plain   = "\x1b[0m"
)

// paint colours a text.
func (t Terminal) paint(color, text string) string {
	if !t.Color || color == "" {
		return text
	}
	return color + text + plain
}

// maxText is how many bytes of one text of an object are shown: agents may write a megabyte.
const maxText = 4 << 10

// text writes a text of an object: safe, not too long, and in ASCII where only that is shown.
func (t Terminal) text(s string) string {
	return t.shown(Safe(message.Cut(s, maxText)))
}

// Line writes a line of a log: safe, with its spaces, and in ASCII where only that is shown.
func (t Terminal) Line(line string) string { return t.shown(strings.TrimRight(spaced(line), " ")) }

// shown writes a safe text in ASCII where only that is shown.
func (t Terminal) shown(s string) string {
	if !t.ASCII {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r > 126 {
			return '?'
		}
		return r
	}, s)
}

// Until writes how long it is until an instant; "ended" where it is over, and empty where there is none.
func (t Terminal) Until(at *time.Time) string {
	switch {
	case at == nil || at.IsZero():
		return ""
	case !at.After(t.Now):
		return "ended"
	}
	return "in " + duration.HumanDuration(at.Sub(t.Now))
}

// Since writes the age of an instant as kubectl does; empty where there is none. An instant that is yet to come,
// because the clocks differ, is now.
func (t Terminal) Since(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(t.Now.Sub(*at), 0))
}
