package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/webhook"
)

func TestHandler(t *testing.T) {
	good, err := json.Marshal(review(beta, addOnAlpha))
	require.NoError(t, err)
	bad, err := json.Marshal(review("v9", addOnAlpha))
	require.NoError(t, err)
	tests := map[string]struct {
		method, contentType, body string
		code                      int
		status                    string
		says                      string
	}{
		"a review is answered": {
			body: string(good), code: http.StatusOK, status: metav1.StatusSuccess, says: "kubeClient",
		},
		"a content type may carry a charset": {
			contentType: "application/json; charset=utf-8", body: string(good),
			code: http.StatusOK, status: metav1.StatusSuccess,
		},
		"a review that cannot be converted is answered with the cause": {
			body: string(bad), code: http.StatusOK, status: metav1.StatusFailure, says: "to v9 is known",
		},
		"another method is refused": {
			method: http.MethodGet, code: http.StatusMethodNotAllowed, says: "POST a ConversionReview",
		},
		"another content type is refused": {
			contentType: "application/yaml", body: string(good), code: http.StatusUnsupportedMediaType,
		},
		"what is no JSON is refused": {body: "{", code: http.StatusBadRequest, says: "decoding the review"},
		"another version of the review is refused": {
			body: strings.Replace(string(good), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1),
			code: http.StatusBadRequest, says: "not a ConversionReview of apiextensions.k8s.io/v1",
		},
		"a body beyond the limit is refused": {
			body: `"` + strings.Repeat("x", 33<<20) + `"`, code: http.StatusRequestEntityTooLarge, says: "larger than",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			method, contentType := test.method, test.contentType
			if method == "" {
				method = http.MethodPost
			}
			if contentType == "" {
				contentType = "application/json"
			}
			request := httptest.NewRequestWithContext(t.Context(), method, webhook.Path, strings.NewReader(test.body))
			request.Header.Set("Content-Type", contentType)
			recorder := httptest.NewRecorder()
			webhook.Handler(logr.Discard()).ServeHTTP(recorder, request)
			body, err := io.ReadAll(recorder.Result().Body)
			require.NoError(t, err)
			assert.Equal(t, test.code, recorder.Code, string(body))
			assert.Contains(t, string(body), test.says)
			if test.code == http.StatusOK {
				answer := &apiextensionsv1.ConversionReview{}
				require.NoError(t, json.Unmarshal(body, answer))
				assert.Equal(t, test.status, answer.Response.Result.Status)
			}
		})
	}
}

func TestServerRunsInEveryReplica(t *testing.T) {
	server := webhook.NewServer(webhook.Options{}, logr.Discard())
	assert.False(t, server.NeedLeaderElection())
}
