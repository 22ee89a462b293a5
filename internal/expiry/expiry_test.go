package expiry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
)

// life is that of a certificate of some days from the first of November.
func life(days int) causes.Life {
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return causes.Life{From: from, To: from.AddDate(0, 0, days)}
}

func TestTheFirstEndOfEachKindIsTold(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 9, 0, 0, 0, 0, time.UTC))
	registry := prometheus.NewPedanticRegistry()
	e, err := expiry.New(registry, now)
	require.NoError(t, err)
	problems, err := testutil.CollectAndLint(e)
	require.NoError(t, err)
	assert.Empty(t, problems)
	says := func(want string) {
		t.Helper()
		head := "# HELP spokelet_certificate_ends_timestamp_seconds When the first certificate of a kind that this program holds " +
			"ends.\n# TYPE spokelet_certificate_ends_timestamp_seconds gauge\n"
		late := "# HELP spokelet_certificates_late Certificates of a kind that this program holds and that should have been " +
			"replaced.\n# TYPE spokelet_certificates_late gauge\n"
		ends, counts, _ := strings.Cut(want, "\n\n")
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(head+ends+"\n"+late+counts)))
	}

	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families, "who holds no certificate tells none")

	e.Set(expiry.Agent, "", life(30))
	e.Set(expiry.AddOn, "logs", life(9), causes.Life{})
	e.Set(expiry.AddOn, "metrics", life(10), life(30))
	says(`spokelet_certificate_ends_timestamp_seconds{kind="addon"} 1.7942688e+09
spokelet_certificate_ends_timestamp_seconds{kind="agent"} 1.7960832e+09

spokelet_certificates_late{kind="addon"} 1
spokelet_certificates_late{kind="agent"} 0
`)
	now.SetTime(now.Now().Add(20 * time.Hour)) // without another look
	says(`spokelet_certificate_ends_timestamp_seconds{kind="addon"} 1.7942688e+09
spokelet_certificate_ends_timestamp_seconds{kind="agent"} 1.7960832e+09

spokelet_certificates_late{kind="addon"} 2
spokelet_certificates_late{kind="agent"} 0
`)
	e.Set(expiry.AddOn, "logs")
	e.Set(expiry.AddOn, "metrics", life(30))
	says(`spokelet_certificate_ends_timestamp_seconds{kind="addon"} 1.7960832e+09
spokelet_certificate_ends_timestamp_seconds{kind="agent"} 1.7960832e+09

spokelet_certificates_late{kind="addon"} 0
spokelet_certificates_late{kind="agent"} 0
`)
	e.Reset(expiry.AddOn)
	says(`spokelet_certificate_ends_timestamp_seconds{kind="agent"} 1.7960832e+09

spokelet_certificates_late{kind="agent"} 0
`)
}

func TestWithoutMetricsNothingIsKept(t *testing.T) {
	var none *expiry.Ends
	none.Set(expiry.Agent, "", life(1))
	none.Reset(expiry.Agent)
	_, err := expiry.New(nil, clocktesting.NewFakePassiveClock(time.Time{}))
	require.NoError(t, err)
}
