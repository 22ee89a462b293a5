package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/sandbox"
)

// closeGrace is how long Close waits for answers that are on their way.
const closeGrace = 2 * time.Second

// Proxy is a way to an API server on which everything but its identity may be a lie. It is honest at first.
type Proxy struct {
	*Liar

	// Host is the URL of the proxy.
	Host string
	// Link is the way to the proxy, which can be cut.
	Link *sandbox.Link

	target  *url.URL
	forward *httputil.ReverseProxy
	server  *http.Server
	served  chan struct{}
}

// New starts an honest proxy before a control plane that was started with Options.FrontProxy. The caller must call
// Close.
func New(plane *sandbox.ControlPlane) (*Proxy, error) {
	p := &Proxy{Liar: NewLiar(), served: make(chan struct{})}
	var err error
	if p.target, err = url.Parse(plane.Host); err != nil {
		return nil, fmt.Errorf("proxying to %s: %w", plane.Host, err)
	}
	own, err := plane.User(sandbox.FrontProxy)
	if err != nil {
		return nil, err
	}
	// Tokens are the client's own, and a certificate is passed on by this identity; the transport has no other
	// credential.
	front, err := rest.TransportFor(own)
	if err != nil {
		return nil, fmt.Errorf("building the transport of the proxy: %w", err)
	}
	plain, err := rest.TransportFor(&rest.Config{
		Host: own.Host, TLSClientConfig: rest.TLSClientConfig{CAData: own.CAData},
	})
	if err != nil {
		return nil, fmt.Errorf("building the transport of the proxy: %w", err)
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: p.rewrite, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Transport: p.Over(byIdentity{front: front, plain: plain}, user),
		// The API server is away: so is the proxy. So is an answer that is lost.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return p, p.serve(plane)
}

// serve starts the server.
func (p *Proxy) serve(plane *sandbox.ControlPlane) error {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(plane.Dir, "server.crt"), filepath.Join(plane.Dir, "server.key"))
	if err != nil {
		return fmt.Errorf("loading the certificate of the API server: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(plane.CA())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	if p.Link, err = sandbox.NewLink("https://" + listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	p.Host = p.Link.Host
	p.server = &http.Server{
		Handler: p.forward, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven,
			MinVersion: tls.VersionTLS12,
		},
	}
	go func() {
		defer close(p.served)
		_ = p.server.ServeTLS(listener, "", "")
	}()
	return nil
}

// Lie lets the proxy lie from now on.
func (p *Proxy) Lie(lies Lies) {
	p.Link.Slow(lies.Rate, lies.Delay)
	if lies.Rate > 0 {
		p.tell("slow")
	}
	p.Liar.Lie(lies)
}

// Honest lets the proxy say the truth from now on.
func (p *Proxy) Honest() {
	p.Link.Slow(0, 0)
	p.Liar.Honest()
}

// Close ends the proxy and all connections.
func (p *Proxy) Close() error {
	p.Honest()
	p.Link.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = p.server.Close() // watches do not end by themselves
	}
	<-p.served
	return err
}

// rewrite sends a request to the API server as the user who sent it. Answers come as JSON, which can be taken apart.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.target)
	r.Out.Host = ""
	for name := range r.Out.Header {
		if strings.HasPrefix(name, "X-Remote-") {
			r.Out.Header.Del(name)
		}
	}
	if user := certified(r.In); user != "" {
		r.Out.Header.Set("X-Remote-User", user)
		for _, group := range r.In.TLS.PeerCertificates[0].Subject.Organization {
			r.Out.Header.Add("X-Remote-Group", group)
		}
	}
	r.Out.Header.Del("Accept-Encoding")
	accept := r.In.Header.Get("Accept")
	r.Out.Header.Set("Accept", strings.ReplaceAll(accept, "application/vnd.kubernetes.protobuf", "application/json"))
}

// certified returns the user of a client certificate, if that is the credential of a request.
func certified(r *http.Request) string {
	if r.Header.Get("Authorization") != "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

// byIdentity sends requests whose user was found by certificate as front proxy, and the others as they are.
type byIdentity struct{ front, plain http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b byIdentity) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Remote-User") != "" {
		return b.front.RoundTrip(r)
	}
	return b.plain.RoundTrip(r)
}

// user names the client of a request that is passed on. A token is named by its end, as it is not decoded here.
func user(r *http.Request) string {
	if name := r.Header.Get("X-Remote-User"); name != "" {
		return name
	}
	token := r.Header.Get("Authorization")
	return token[max(0, len(token)-16):]
}

// writes are the methods that change something.
func writes(r *http.Request) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
}
