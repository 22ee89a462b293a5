package issue

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"

	"github.com/spokelet/spokelet/csr"
)

func TestWhatIsBuiltFits(t *testing.T) {
	ca := newSigner(t)
	addon := ofAddon(t, "hello", "example.com/signer", "g2", "g1", "g1")
	for name, want := range map[string]csr.Request{"cluster": csr.ForCluster("c1", "a1"), "add-on": addon} {
		t.Run(name, func(t *testing.T) {
			pair := ca.pair(t, want, noon.Add(-time.Minute), noon.Add(time.Hour))
			v := JudgePair(pair, want, noon)
			assert.True(t, v.Fits, v.Why)
			assert.Empty(t, v.Why)
			assert.False(t, v.Due(noon))
			assert.True(t, v.Due(noon.Add(50*time.Minute)))

			changes := map[string]func(*csr.Request){
				"another user":         func(r *csr.Request) { r.User += "x" },
				"another group":        func(r *csr.Request) { r.Groups = append([]string{"other"}, r.Groups[1:]...) },
				"one more group":       func(r *csr.Request) { r.Groups = append([]string{"more"}, r.Groups...) },
				"no group":             func(r *csr.Request) { r.Groups = nil },
				"another organization": func(r *csr.Request) { r.OrganizationalUnits = []string{"other"} },
			}
			for change, apply := range changes {
				other := want
				apply(&other)
				v := JudgePair(pair, other, noon)
				assert.False(t, v.Fits, change)
				assert.NotEmpty(t, v.Why, change)
			}
		})
	}
}

// Shows: registration/rotation-decided
func TestJudgePair(t *testing.T) {
	ca := newSigner(t)
	want := csr.ForCluster("c1", "a1")
	good := ca.pair(t, want, noon.Add(-time.Minute), noon.Add(time.Hour))
	other := ca.pair(t, want, noon.Add(-time.Minute), noon.Add(time.Hour))
	short := ca.pair(t, want, noon.Add(-time.Minute), noon.Add(time.Second))
	early := ca.pair(t, want, noon.Add(time.Minute), noon.Add(time.Hour))
	reordered := want
	reordered.Groups = []string{want.Groups[1], want.Groups[0]}
	tests := map[string]struct {
		pair Pair
		want csr.Request
		now  time.Time
		why  string
	}{
		"a good pair fits":                        {pair: good, want: want, now: noon},
		"the order of the groups does not matter": {pair: good, want: reordered, now: noon},
		"a pair from a clock ahead of ours fits":  {pair: early, want: want, now: noon},
		"nothing does not fit":                    {want: want, now: noon, why: "there is no certificate"},
		"garbage does not fit": {
			pair: Pair{Certificate: []byte("x"), Key: good.Key}, want: want, now: noon,
			why: "holds no PEM block of type CERTIFICATE",
		},
		"a certificate that cannot be decoded does not fit": {
			pair: Pair{Certificate: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), Key: good.Key},
			want: want, now: noon, why: "the certificate cannot be read",
		},
		"without its key it does not fit": {
			pair: Pair{Certificate: good.Certificate}, want: want, now: noon, why: "the private key holds no PEM block",
		},
		"with another key it does not fit": {
			pair: Pair{Certificate: good.Certificate, Key: other.Key}, want: want, now: noon,
			why: "the certificate was issued for another private key",
		},
		"expired it does not fit": {
			pair: good, want: want, now: noon.Add(time.Hour + time.Second),
			why: "the certificate expired at 2026-11-20T13:00:00Z",
		},
		"with an expired certificate in its chain it does not fit": {
			pair: Pair{Certificate: append(bytes.Clone(good.Certificate), short.Certificate...), Key: good.Key},
			want: want, now: noon.Add(2 * time.Second), why: "the certificate expired at 2026-11-20T12:00:01Z",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := JudgePair(tc.pair, tc.want, tc.now)
			assert.Equal(t, tc.why == "", v.Fits, v.Why)
			assert.Contains(t, v.Why, tc.why)
		})
	}
}

func TestALifeBeginsWhenTheCertificateWasIssued(t *testing.T) {
	ca := newSigner(t)
	want := csr.ForCluster("c1", "a1")
	// Signers date certificates back: this one is good for a minute and says that it is good since five.
	pair := ca.pair(t, want, noon.Add(-5*time.Minute), noon.Add(time.Minute))
	tests := map[string]struct {
		issued, from time.Time
	}{
		"at the instant of issue":                              {noon, noon},
		"at the start of validity where that is not known":     {time.Time{}, noon.Add(-5 * time.Minute)},
		"not before it was valid, whatever our clock says":     {noon.Add(-time.Hour), noon.Add(-5 * time.Minute)},
		"not after it expired, whatever our clock says":        {noon.Add(time.Hour), noon.Add(-5 * time.Minute)},
		"at any later instant at which the agent first got it": {noon.Add(30 * time.Second), noon.Add(30 * time.Second)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pair.IssuedAt = tc.issued
			v := JudgePair(pair, want, noon)
			require.True(t, v.Fits, v.Why)
			share := float64(v.RotateAt.Sub(tc.from)) / float64(v.NotAfter.Sub(tc.from))
			assert.InDelta(t, 0.775, share, 0.0251)
		})
	}
}

func TestAPairSurvivesItsSecret(t *testing.T) {
	ca := newSigner(t)
	pair := ca.pair(t, csr.ForCluster("c1", "a1"), noon, noon.Add(time.Hour))
	pair.IssuedAt = noon
	secret := &corev1.Secret{Data: map[string][]byte{"other": []byte("stays")}}
	pair.Put(secret)
	assert.Equal(t, pair, PairOf(secret))
	assert.Equal(t, []byte("stays"), secret.Data["other"])
	pair.IssuedAt = time.Time{}
	pair.Put(secret)
	assert.Equal(t, pair, PairOf(secret), "what is not known any more is not left standing")
	secret.Annotations = map[string]string{names.AnnotationIssuedAt: "yesterday"}
	assert.Equal(t, pair, PairOf(secret), "an instant that cannot be read is not known")
	assert.Equal(t, Pair{}, PairOf(nil))
}

func FuzzJudgePair(f *testing.F) {
	ca := newSigner(f)
	want := csr.ForCluster("c1", "a1")
	good := ca.pair(f, want, noon, noon.Add(time.Hour))
	f.Add(good.Certificate, good.Key)
	f.Add([]byte{}, good.Key)
	f.Add(good.Certificate[:len(good.Certificate)/2], good.Key[:10])
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		v := JudgePair(Pair{Certificate: certificate, Key: key}, want, noon)
		if v.Fits == (v.Why != "") {
			t.Errorf("fits %t, but: %q", v.Fits, v.Why)
		}
		if v.Fits && (v.RotateAt.Before(v.NotBefore) || v.RotateAt.After(v.NotAfter)) {
			t.Errorf("rotates at %s, valid from %s to %s", v.RotateAt, v.NotBefore, v.NotAfter)
		}
	})
}
