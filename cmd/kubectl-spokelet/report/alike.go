package report

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// trouble is equal for problems of one kind: two of one code may say very different things.
type trouble struct {
	code causes.Code
	said string
}

// trouble returns the kind of a problem.
func (p *Problem) trouble() trouble {
	return trouble{p.Code, Alike(cmp.Or(p.Message, p.Reason), p.Namespace)}
}

// like reports whether a problem of an add-on is of the kind of another one; that of a cluster is told by its code, in
// other words.
func (p *Problem) like(other *Problem) bool {
	if other.Kind == KindCluster {
		return p.Code == other.Code
	}
	return p.trouble() == other.trouble()
}

// maxAlike is how many bytes of a message are compared.
const maxAlike = 1000

// Alike returns what a message has in common with those of other clusters: the name of the cluster, names of pods,
// numbers and hashes are replaced.
func Alike(text, cluster string) string {
	var all []string
	before := ""
	for field := range strings.FieldsSeq(message.Cut(text, maxAlike)) {
		if pod := strings.ToLower(before); (pod == "pod" || pod == "pods") && strings.ContainsAny(field, "-/") {
			all = append(all, "#")
		} else {
			all = append(all, plain(field, cluster))
		}
		before = field
	}
	return strings.Join(all, " ")
}

// plain replaces what is different from cluster to cluster in a text without spaces.
func plain(field, cluster string) string {
	var out strings.Builder
	for field != "" {
		n := strings.IndexFunc(field, func(r rune) bool { return r != '-' && !isPlain(r) })
		switch {
		case n < 0:
			n = len(field)
		case n == 0:
			_, n = utf8.DecodeRuneInString(field)
			out.WriteString(field[:n])
			field = field[n:]
			continue
		}
		out.WriteString(numberless(field[:n], cluster))
		field = field[n:]
	}
	return out.String()
}

// isPlain reports whether a character is a letter or a digit of names.
func isPlain(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// numberless returns a word with marks for its parts that have digits; a mark for the name of the cluster and a UUID.
func numberless(word, cluster string) string {
	const uuid, dashes = 36, 4
	parts := strings.Split(word, "-")
	if word == cluster || len(word) == uuid && len(parts) == dashes+1 {
		return "#"
	}
	for i := range parts {
		if strings.ContainsAny(parts[i], "0123456789") {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, "-")
}
