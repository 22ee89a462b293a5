package certificate

import (
	"crypto/rand"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// made returns what was made at two instants.
func made(t *testing.T, authorityAt, servingAt time.Time, names ...string) Kept {
	t.Helper()
	authority, err := newAuthority(authorityAt, rand.Reader)
	require.NoError(t, err)
	serving, err := newServing(authority, names, servingAt, rand.Reader)
	require.NoError(t, err)
	return Kept{
		Trusted: []*x509.Certificate{authority.certificate}, AuthorityKey: authority.key, Serving: serving.certificate,
	}
}

func TestDecide(t *testing.T) {
	const name = "hook.ns.svc"
	fresh := made(t, noon, noon, name)
	settled := made(t, noon.Add(-17*servingLife/2), noon.Add(-servingLife*2/3), name)
	for sentence, tc := range map[string]struct {
		kept Kept
		at   time.Time
		name string
		want Plan
	}{
		"an empty Secret gets both": {
			at: noon, want: Plan{Authority: true, Serving: true, Next: noon.Add(servingLife * 2 / 3)},
		},
		"an authority without its key is replaced with all it signed": {
			kept: Kept{Trusted: fresh.Trusted, Serving: fresh.Serving}, at: noon,
			want: Plan{Authority: true, Serving: true, Next: noon.Add(servingLife * 2 / 3)},
		},
		"what was just made is kept until two thirds of its life are over": {
			kept: fresh, at: noon, want: Plan{Next: noon.Add(-backdated).Add((servingLife + backdated) * 2 / 3)},
		},
		"a certificate in the last third of its life is renewed": {
			kept: fresh, at: noon.Add(servingLife * 3 / 4),
			want: Plan{Serving: true, Next: noon.Add(servingLife * 3 / 4).Add(servingLife * 2 / 3)},
		},
		"a certificate for another name is replaced at once": {
			kept: fresh, at: noon, name: "10.0.0.1", want: Plan{Serving: true, Next: noon.Add(servingLife * 2 / 3)},
		},
		"a certificate that ended is replaced at once": {
			kept: fresh, at: noon.Add(servingLife), want: Plan{Serving: true, Next: noon.Add(servingLife).Add(servingLife * 2 / 3)},
		},
		"a certificate of an authority that is not trusted is replaced": {
			kept: Kept{Trusted: fresh.Trusted, AuthorityKey: fresh.AuthorityKey, Serving: settled.Serving}, at: noon,
			want: Plan{Serving: true, Next: noon.Add(servingLife * 2 / 3)},
		},
		"an authority near its end is replaced, and the serving certificate follows when the new one has settled": {
			kept: settled, at: noon, want: Plan{Authority: true, KeepTrusted: true, Next: noon.Add(activationDelay)},
		},
		"an authority that ends before a certificate would is of no use": {
			kept: settled, at: noon.Add(servingLife * 3 / 4),
			want: Plan{Authority: true, Serving: true, Next: noon.Add(servingLife * 3 / 4).Add(servingLife * 2 / 3)},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.name == "" {
				tc.name = name
			}
			assert.Equal(t, tc.want, Decide(tc.kept, []string{tc.name}, tc.at))
		})
	}
}
