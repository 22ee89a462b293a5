package command

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestElection(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args    []string
		off     bool
		problem string
	}{
		"the defaults are valid":                 {},
		"it is turned off":                       {args: []string{"--leader-elect=false"}, off: true},
		"it is turned off by OCM's flag":         {args: []string{"--disable-leader-election"}, off: true},
		"OCM's flag with false changes nothing":  {args: []string{"--leader-elect=false", "--disable-leader-election=false"}, off: true},
		"a leader has to renew":                  {args: []string{"--leader-election-retry-period=0s"}, problem: "--leader-election-retry-period: 0s must be above 0"},
		"a leader has to renew more than once":   {args: []string{"--leader-election-retry-period=18s"}, problem: "20s must be above 1.2 times --leader-election-retry-period, 18s"},
		"a leader ends before its lease expires": {args: []string{"--leader-election-renew-deadline=30s"}, problem: "30s must be above --leader-election-renew-deadline, 30s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := Election{LeaderElect: true, LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 5 * time.Second}
			flags := pflag.NewFlagSet("program", pflag.ContinueOnError)
			e.AddFlags(flags)
			require.NoError(t, flags.Parse(tc.args))
			assert.Equal(t, !tc.off, e.LeaderElect)
			if tc.problem != "" {
				require.ErrorContains(t, e.Validate(), tc.problem)
				return
			}
			require.NoError(t, e.Validate())
		})
	}
}
