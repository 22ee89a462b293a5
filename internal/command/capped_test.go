package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// everything is a verbosity that no library goes beyond.
	everything = 1000
	// bearer is the token of the client, secret what the bodies of the requests and answers carry.
	bearer, secret = "bearer-4f9c", "top-secret-71aa"
)

// TestNoVerbosityLogsBodiesOrHeaders reads and writes what must not be logged, with every logger that a program may
// have.
func TestNoVerbosityLogsBodiesOrHeaders(t *testing.T) {
	for name, logTo := range map[string]func(ctx context.Context, out *safeBuffer) context.Context{
		"the logger that the program makes": func(ctx context.Context, out *safeBuffer) context.Context {
			t.Cleanup(klog.ClearLogger)
			return WithLogger(ctx, out, everything)
		},
		"the logger that is there already": func(ctx context.Context, out *safeBuffer) context.Context {
			given := funcr.New(func(prefix, args string) { _, _ = out.Write([]byte(prefix + args + "\n")) },
				funcr.Options{Verbosity: everything})
			return WithLogger(logr.NewContext(ctx, given), nil, everything)
		},
		"a logger derived from that of the program": func(ctx context.Context, out *safeBuffer) context.Context {
			t.Cleanup(klog.ClearLogger)
			ctx = WithLogger(ctx, out, everything)
			logger := ctrl.LoggerFrom(ctx).WithName("deeper").WithValues("a", "b").WithCallDepth(1)
			return ctrl.LoggerInto(ctx, logger)
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := &safeBuffer{}
			ctx := logTo(t.Context(), out)
			useSecrets(ctx, t)
			ctrl.LoggerFrom(ctx).V(1).Info("what we log ourselves is logged")

			text := out.String()
			assert.Contains(t, text, "what we log ourselves is logged")
			for _, never := range []string{bearer, secret, base64.StdEncoding.EncodeToString([]byte(secret)), "Authorization"} {
				assert.NotContains(t, text, never)
			}
		})
	}
}

// useSecrets reads and creates a Secret, a kubeconfig in a Secret and a token, and is told of an error with such a
// body.
func useSecrets(ctx context.Context, t *testing.T) {
	t.Helper()
	kept := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kept"},
		Data:       map[string][]byte{"kubeconfig": []byte("token: " + secret), "password": []byte(secret)},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = kept
		switch r.URL.Path {
		case "/api/v1/namespaces/ns/serviceaccounts/one/token":
			answer = &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: secret}}
		case "/api/v1/namespaces/ns/secrets/denied":
			w.WriteHeader(http.StatusForbidden)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, BearerToken: bearer,
		ContentConfig: rest.ContentConfig{AcceptContentTypes: "application/json", ContentType: "application/json"},
	})
	require.NoError(t, err)

	got, err := client.CoreV1().Secrets("ns").Get(ctx, "kept", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, kept.Data, got.Data)
	_, err = client.CoreV1().Secrets("ns").Create(ctx, kept, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Secrets("ns").Get(ctx, "denied", metav1.GetOptions{})
	require.Error(t, err)
	token, err := client.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "one", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, secret, token.Status.Token)
}

// safeBuffer is a buffer that several goroutines may write to.
type safeBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(line)
}

// String returns what was written.
func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
