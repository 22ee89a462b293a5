package hub

import (
	"bytes"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

func TestThePoliciesArePrintedForTheNamesThatAreAskedFor(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args []string
		want [][]byte
	}{
		"those that are shipped": {
			[]string{"--namespace=" + names.NamespaceHub}, manifests.Policies(),
		},
		"those for other names": {
			[]string{"--namespace=elsewhere", "--service-account=me"},
			manifests.PoliciesFor("elsewhere", "me", names.ServiceAccountAddons),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			_, err := ParseFlags(append(tc.args, "--print-policies"), &out)
			require.ErrorIs(t, err, pflag.ErrHelp, "nothing is run")
			want := bytes.Join(tc.want, []byte("---\n"))
			assert.Equal(t, "---\n"+string(want), out.String())
		})
	}
}

func TestPoliciesAreRequiredUnlessThatIsTurnedOff(t *testing.T) {
	var out bytes.Buffer
	c, err := ParseFlags(nil, &out)
	require.NoError(t, err)
	assert.True(t, c.RequirePolicies)
	c, err = ParseFlags([]string{"--require-policies=false"}, &out)
	require.NoError(t, err)
	assert.False(t, c.RequirePolicies)
}
