package page

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

func TestAPageIsServedOnThisMachineAloneUntilTheContextEnds(t *testing.T) {
	hub, err := simulated.Healthy()
	s := open(t, hub, err)
	ctx, end := context.WithCancel(t.Context())
	l, err := Listen(ctx, 0)
	require.NoError(t, err)
	at, is := l.Addr().(*net.TCPAddr)
	require.True(t, is)
	assert.True(t, at.IP.IsLoopback())
	_, err = Listen(ctx, at.Port)
	require.Error(t, err, "another program has the port")
	served := New(s.Options)
	ended := make(chan error)
	go func() { ended <- served.Serve(ctx, l) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+served.Path(), nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(body), "No problem was found")
	end()
	require.NoError(t, <-ended)
}
