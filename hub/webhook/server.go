package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Path is the path of the conversion.
const Path = "/convert"

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
	// ClientCAs, unless nil, are the authorities of clients: a request without a certificate of theirs is refused.
	ClientCAs *x509.CertPool
	// Counters count what conversions lose and refuse; nil counts nothing.
	Counters *Counters
}

// server bounds what is registered.
type server struct {
	ctrlwebhook.Server

	limits *limits
	known  bool
}

// Register adds a check of admission reviews at a path.
func (s *server) Register(path string, check http.Handler) {
	s.add(path, maxAdmission, s.limits.sane(check))
}

func (s *server) add(path string, most int64, handler http.Handler) {
	handler = s.limits.bound(most, handler)
	if s.known {
		handler = onlyKnown(handler)
	}
	s.Server.Register(path, handler)
}

// NewServer returns the TLS server of the conversion for a manager. It runs in every replica. Its StartedChecker
// reports whether it answers.
func NewServer(opts Options, log logr.Logger) ctrlwebhook.Server {
	s := &server{limits: newLimits(), known: opts.ClientCAs != nil, Server: ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host:    opts.Host,
		Port:    opts.Port,
		CertDir: opts.CertDir,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion, c.CipherSuites = max(opts.MinVersion, tls.VersionTLS12), opts.CipherSuites
			c.GetCertificate = opts.Certificate
			if opts.ClientCAs != nil {
				// Whether there is one is asked for each request, because the server connects to itself without.
				c.ClientCAs, c.ClientAuth = opts.ClientCAs, tls.VerifyClientCertIfGiven
			}
		}},
	})}
	s.add(Path, maxBody, &handler{log: log, limits: s.limits, counters: opts.Counters})
	return s
}

// onlyKnown returns a handler that refuses clients without a certificate, which TLS has checked.
func onlyKnown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate is required", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Counters count what conversions lose and refuse.
type Counters struct{ dropped, refused prometheus.Counter }

// NewCounters registers the counters; nil registers them nowhere. A conversion that is refused is not a failed request:
// the API server asks, and gets the refusal as the answer.
func NewCounters(registerer prometheus.Registerer) (*Counters, error) {
	counter := func(name, help string) (prometheus.Counter, error) {
		return reconcile.RegisterMetric(registerer, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
	}
	dropped, err := counter("spokelet_conversion_dropped_total",
		"Fields that conversions of add-ons left out, because no annotation can carry them.")
	if err != nil {
		return nil, err
	}
	refused, err := counter("spokelet_conversion_refused_total",
		"Reviews that were refused, because an object cannot be converted.")
	return &Counters{dropped: dropped, refused: refused}, err
}

// Handler returns the handler of conversions. A request without a review gets an HTTP error; a failed conversion is
// part of the review.
func Handler(log logr.Logger) http.Handler { return CountedHandler(log, nil) }

// CountedHandler returns the Handler that counts; without counters, it counts nothing.
func CountedHandler(log logr.Logger, counters *Counters) http.Handler {
	l := newLimits()
	return l.bound(maxBody, &handler{log: log, limits: l, counters: counters})
}

// handler converts reviews, object by object.
type handler struct {
	log    logr.Logger
	limits *limits
	// counters is nil where nothing is counted.
	counters *Counters
}

// ServeHTTP answers one review. It ends with its client.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, err := checkRequest(r); err != nil {
		h.refuse(w, code, err)
		return
	}
	reader := &reviewReader{body: &meter{from: r.Body}, batch: h.limits.converter(r.Context())}
	reader.converted.limit = maxBody * expansion
	if r.ContentLength >= 0 {
		reader.converted.limit = max(int(r.ContentLength)*expansion, smallAnswer)
	}
	err := reader.read()
	var tooLarge *http.MaxBytesError
	switch {
	case r.Context().Err() != nil:
		return
	case errors.Is(err, errEnough):
	case errors.As(err, &tooLarge), errors.Is(err, errTooLarge):
		h.refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the review is larger than allowed: %w", err))
		return
	case err != nil:
		h.refuse(w, http.StatusBadRequest, fmt.Errorf("decoding the review: %w", err))
		return
	}
	h.answer(w, reader)
}

// converter returns a function that converts an object of a review when it is its turn, until ctx ends.
func (l *limits) converter(ctx context.Context) func(raw []byte, b *batch) error {
	return func(raw []byte, b *batch) error {
		weight, _ := weigh(raw) // The conversion refuses what is too large.
		if err := l.objects.Acquire(ctx, weight); err != nil {
			return fmt.Errorf("waiting for a turn: %w", err)
		}
		defer l.objects.Release(weight)
		b.add(raw)
		if b.failed > maxRefused {
			return errEnough
		}
		return nil
	}
}

func (h *handler) refuse(w http.ResponseWriter, code int, err error) {
	h.log.Info("refused a request for conversion", "cause", err.Error())
	http.Error(w, err.Error(), code)
}

// answer writes the review with the converted objects, without another copy of them.
func (h *handler) answer(w http.ResponseWriter, read *reviewReader) {
	b := &read.converted
	if b.dropped > 0 {
		if h.counters != nil {
			h.counters.dropped.Add(float64(b.dropped))
		}
		h.log.Info("fields were left out of a conversion: an annotation carries a limited number of fields that this "+
			"version does not know", "fields", b.dropped, "objects", b.total, "version", b.desired)
	}
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err := read.refusal(); err != nil {
		if h.counters != nil {
			h.counters.refused.Inc()
		}
		h.log.Info("refused a conversion", "cause", err.Error())
		result = refusal(err)
		b.converted = nil
	}
	if err := writeAnswer(w, read.uid, result, b.converted); err != nil {
		h.log.Info("answering a conversion", "cause", err.Error())
	}
}

// checkRequest returns why a request is not served, with its HTTP status.
func checkRequest(r *http.Request) (int, error) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, fmt.Errorf("%s is not served here: POST a ConversionReview", r.Method)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, fmt.Errorf("the content type is %q, not application/json",
			r.Header.Get("Content-Type"))
	}
	return http.StatusOK, nil
}

const (
	// workAdmissionName is the name of the webhook configuration for ManifestWorks (manifests/hub/work-webhook), which
	// earlier versions of the hub manager applied themselves.
	workAdmissionName = "manifestworks.admission.spokelet.io"
	// clusterAdmissionName is the name of two former webhook configurations for ManagedClusters, which policies have
	// replaced.
	clusterAdmissionName = "managedclusters.admission.spokelet.io"
)

// Configurations returns the webhook configurations of this and earlier versions, by name. The hub manager has no right
// to any of them.
func Configurations() []client.Object {
	former := metav1.ObjectMeta{Name: clusterAdmissionName}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: former},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: former},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: workAdmissionName}},
	}
}
