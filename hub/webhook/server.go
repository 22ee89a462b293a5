package webhook

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	kjson "sigs.k8s.io/json"
)

const (
	// Path is the path of the conversion.
	Path = "/convert"
	// maxBody is the size limit of a review, in bytes. An API server sends single objects, or one page of a list.
	maxBody = 32 << 20
)

// Options configure the server.
type Options struct {
	// Host is the address to listen on; empty means all.
	Host string
	// Port is the TCP port to listen on; 0 means 9443, the port of OCM.
	Port int
	// CertDir contains tls.crt and tls.key, PEM. Both are read again when they change.
	CertDir string
	// Certificate, if set, returns the certificate of each connection in place of CertDir.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// MinVersion is the lowest version of TLS; CipherSuites are those of TLS 1.2. Zero means TLS 1.2 and the suites of Go.
	MinVersion   uint16
	CipherSuites []uint16
}

// NewServer returns the TLS server of the conversion for a manager. It runs in every replica. Its StartedChecker
// reports whether it answers.
func NewServer(opts Options, log logr.Logger) ctrlwebhook.Server {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host:    opts.Host,
		Port:    opts.Port,
		CertDir: opts.CertDir,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion, c.CipherSuites = max(opts.MinVersion, tls.VersionTLS12), opts.CipherSuites
			c.GetCertificate = opts.Certificate
		}},
	})
	server.Register(Path, Handler(log))
	return server
}

// Handler serves Convert over HTTP. A request without a review gets an HTTP error; a failed conversion is part of the
// review.
func Handler(log logr.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review, code, err := readReview(w, r)
		if err != nil {
			log.Info("refused a request for conversion", "cause", err.Error())
			http.Error(w, err.Error(), code)
			return
		}
		answer := Convert(review)
		if result := answer.Response.Result; result.Message != "" {
			log.Info("refused a conversion", "cause", result.Message)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Info("answering a conversion", "cause", err.Error())
		}
	})
}

// readReview returns the review in the body of a request, or an error with its HTTP status.
func readReview(w http.ResponseWriter, r *http.Request) (*apiextensionsv1.ConversionReview, int, error) {
	if r.Method != http.MethodPost {
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("%s is not served here: POST a ConversionReview", r.Method)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("the content type is %q, not application/json",
			r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review is larger than %d bytes", tooLarge.Limit)
	case err != nil:
		return nil, http.StatusBadRequest, fmt.Errorf("reading the review: %w", err)
	}
	review := &apiextensionsv1.ConversionReview{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("decoding the review: %w", err)
	}
	if review.Kind != "ConversionReview" || review.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, http.StatusBadRequest, fmt.Errorf("this is a %s of %s, not a ConversionReview of %s",
			review.Kind, review.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	return review, http.StatusOK, nil
}
