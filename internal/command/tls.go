package command

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The names of the flags of TLS.
const flagMinVersion, flagCipherSuites = "tls-min-version", "tls-cipher-suites"

// TLS restricts the versions and cipher suites of a server, by the names that Kubernetes uses.
type TLS struct {
	// MinVersion is VersionTLS12 or VersionTLS13; empty means VersionTLS12.
	MinVersion string
	// CipherSuites are those of TLS 1.2; empty means those of Go. Those of TLS 1.3 cannot be chosen.
	CipherSuites []string
}

// AddFlags binds the flags; their defaults are the values in t.
func (t *TLS) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&t.MinVersion, flagMinVersion, t.MinVersion,
		"least version of TLS that is served: VersionTLS12 or VersionTLS13; empty means VersionTLS12")
	f.StringSliceVar(&t.CipherSuites, flagCipherSuites, t.CipherSuites,
		"cipher suites that are served, of TLS 1.2; those of TLS 1.3 cannot be chosen; empty means those of Go")
}

// Validate complains about a version or a cipher suite that cannot be served.
func (t *TLS) Validate(complain func(flag, format string, args ...any)) {
	if err := (TLS{MinVersion: t.MinVersion}).Apply(&tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		complain(flagMinVersion, "%s", err)
	}
	if err := (TLS{CipherSuites: t.CipherSuites}).Apply(&tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		complain(flagCipherSuites, "%s", err)
	}
}

// Apply sets the version and the cipher suites of a server.
func (t TLS) Apply(c *tls.Config) error {
	versions := map[string]uint16{"": tls.VersionTLS12, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}
	version, known := versions[t.MinVersion]
	if !known {
		return fmt.Errorf("%q is no version that is served, these are VersionTLS12 and VersionTLS13", t.MinVersion)
	}
	suites := map[string]uint16{}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		suites[suite.Name] = suite.ID
	}
	var ids []uint16
	for _, name := range t.CipherSuites {
		id, known := suites[strings.TrimSpace(name)]
		if !known {
			return fmt.Errorf("%q is no cipher suite that is served, these are %s", name,
				strings.Join(slices.Sorted(maps.Keys(suites)), ", "))
		}
		ids = append(ids, id)
	}
	c.MinVersion, c.CipherSuites = version, ids
	return nil
}
