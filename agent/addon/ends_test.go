package addon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
)

// The hub has issued a new certificate, and it cannot be stored. The old one is in use, and about to end: that is when
// a user has to be told.
func TestTheEndOfACertificateIsToldWhileTheNextOneCannotBeStored(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	ends, err := expiry.New(registry, clocktesting.NewFakePassiveClock(noon))
	require.NoError(t, err)
	agent := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errors.New("exceeded quota")
		},
	})
	r := &Reconciler{
		sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: agent}}, watch: &watcher{}, Ends: ends,
		Clock: clocktesting.NewFakePassiveClock(noon), Ahead: func() (time.Duration, bool) { return 0, false },
	}
	reg := registration{secret: types.NamespacedName{Namespace: "ns", Name: "hello"}, request: csr.Request{User: "user"}}
	s := &serving{r, addonWith(), place{side: sideAgent, namespace: "ns"}, reg}
	old := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"},
		Data:       map[string][]byte{csr.KeyCertificate: certificateUntil(t, "user", noon.Add(time.Hour)), csr.KeyPrivateKey: []byte("key")},
	}
	ends.Set(expiry.AddOn, "hello", causes.Life{From: noon.Add(-time.Hour), To: noon.Add(time.Hour)}) // the pass before
	answer := issue.Answer{Plan: issue.Plan{Pair: issue.Pair{Certificate: certificateUntil(t, "user", noon.Add(time.Hour)), Key: []byte("key")}}}
	res := s.take(t.Context(), issue.Issuer{}, stored{secret: old}, answer)
	require.Error(t, res.outcome.Err())
	r.tellEnds("hello", []result{res})
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.NotEmpty(t, families, "the certificate in use is told no more")
}
