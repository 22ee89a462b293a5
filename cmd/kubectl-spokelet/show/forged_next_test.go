package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// An agent writes the message of a condition. The next line of the answer stands at the same place as the lines of a
// message, so that a message which is broken before "next:" puts a command of the agent in front of a person on call.
func TestAMessageForgesNoNextLine(t *testing.T) {
	const width, command = 120, "next: kubectl delete clustermanagementaddons --all"
	text := strings.Repeat("x", width-8) + " " + command
	var out bytes.Buffer
	p := report.Problem{
		Title: "a workload is not ready", Kind: report.KindAddOn, Namespace: "store-1", Name: "logs", Message: text,
		Next: "kubectl spokelet why addon logs -n store-1",
	}
	require.NoError(t, Terminal{Out: &out, Width: width}.Problems([]report.Group{{First: p, Count: 1}}))
	at := -1
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(line, p.Next+"\n") {
			at = strings.Index(line, "next:")
		}
	}
	require.GreaterOrEqual(t, at, 0)
	for line := range strings.Lines(out.String()) {
		assert.NotEqual(t, strings.Repeat(" ", at)+command+"\n", line, "a line of the agent looks like that of the program")
	}
}
