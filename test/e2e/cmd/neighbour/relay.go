package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// relayAddress is where the hub part listens.
	relayAddress = ":8443"
	// maxBody is the longest body of a request or an answer that is read.
	maxBody = 1 << 20
)

// relayHub is the hub part of add-on relay: one server with a webhook for the API server of the hub, and a way in for
// agents whose certificate is of the authority of the add-on. All its files are read again for each connection.
func relayHub(ctx context.Context, o options) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", validate)
	mux.HandleFunc("GET /tunnel", tunnel)
	server := &http.Server{
		Addr: relayAddress, Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return mutual(o.certificate, filepath.Join(o.certificate, "ca.crt"), tls.VerifyClientCertIfGiven)
			},
		},
	}
	// Connections that were made with a former certificate must not stay.
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS("", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		return server.Close()
	}
}

// mutual reads a certificate and an authority for one connection, in either direction.
func mutual(folder, authority string, clients tls.ClientAuthType) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("reading the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", authority)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, RootCAs: pool,
		ClientAuth: clients,
	}, nil
}

// tunnel answers an agent with the organizational unit in its certificate.
func tunnel(w http.ResponseWriter, r *http.Request) {
	if len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "a certificate of the add-on is needed", http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, strings.Join(r.TLS.PeerCertificates[0].Subject.OrganizationalUnit, ","))
}

// validate lets only the agent of a cluster write the reports in the namespace of that cluster.
func validate(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&review)
	if err != nil || review.Request == nil {
		http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	agent := "system:open-cluster-management:cluster:" + review.Request.Namespace + ":addon:relay:agent:"
	user := review.Request.UserInfo.Username
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: strings.HasPrefix(user, agent),
		Result: &metav1.Status{Message: "relay: " + user + " is not the agent of this cluster"},
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		slog.Warn("answering the API server", "error", err)
	}
}

// relayAgent is the agent of add-on relay. It goes to its hub part with one certificate, and reports on the hub, with
// the other one, what it heard there.
func relayAgent(ctx context.Context, o options) error {
	hub, err := o.client()
	if err != nil {
		return err
	}
	report := record{namespace: o.cluster, name: "relay", labels: map[string]string{"relay.example.com/report": "true"}}
	return forever(ctx, func(ctx context.Context) error {
		return relayOnce(ctx, o, hub, report)
	})
}

func relayOnce(ctx context.Context, o options, hub kubernetes.Interface, report record) error {
	config, err := mutual(o.certificate, o.authority, tls.NoClientCert)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.server+"/tunnel", nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return fmt.Errorf("asking the hub part: %w", err)
	}
	defer response.Body.Close()
	heard, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return fmt.Errorf("reading the answer of the hub part: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("the hub part answers " + response.Status)
	}
	return report.write(ctx, hub, map[string]string{"unit": string(heard)})
}
