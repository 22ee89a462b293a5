package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	// reportName is the name of the ConfigMap with the report.
	reportName = "weather"
	// centralNamespace and forecastName identify the ConfigMap with the forecast on the hub.
	centralNamespace, forecastName = "weather-central", "forecast"
	// closed is the key in the ConfigMap that marks the last report.
	closed = "closed"
)

// Report holds what the agent reports.
type Report struct {
	// Station is the subject of the certificate.
	Station string `json:"station"`
	// Forecast is the text on the hub.
	Forecast string `json:"forecast"`
	// Kubernetes is the version of the managed cluster, and Nodes the number of its nodes.
	Kubernetes string `json:"kubernetes"`
	Nodes      int    `json:"nodes"`
}

// station makes the reports of one cluster.
type station struct {
	hub, managed kubernetes.Interface
	// cluster is the namespace of the report on the hub.
	cluster string
	// certificate is the folder with the certificate.
	certificate string
	// reported reports that there was a report.
	reported bool
}

// report writes a report, unless the one on the hub is the same.
func (s *station) report(ctx context.Context) error {
	// The files are read each time, because the certificate is renewed.
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.certificate, "tls.crt"), filepath.Join(s.certificate, "tls.key"))
	if err != nil {
		return fmt.Errorf("reading the certificate of the station: %w", err)
	}
	forecast, err := s.hub.CoreV1().ConfigMaps(centralNamespace).Get(ctx, forecastName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the forecast on the hub: %w", err)
	}
	version, err := s.managed.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("reading the version of the managed cluster: %w", err)
	}
	nodes, err := s.managed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of the managed cluster: %w", err)
	}
	data, err := signed(pair, Report{
		Station: pair.Leaf.Subject.CommonName, Forecast: forecast.Data["text"], Kubernetes: version.GitVersion,
		Nodes: len(nodes.Items),
	})
	if err != nil {
		return fmt.Errorf("signing the report: %w", err)
	}
	return s.write(ctx, data)
}

// signed returns the data of the ConfigMap: a report, its certificate, and its signature.
func signed(pair tls.Certificate, report Report) (map[string]string, error) {
	text, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	key, isSigner := pair.PrivateKey.(crypto.Signer)
	if !isSigner {
		return nil, fmt.Errorf("a key of type %T cannot sign", pair.PrivateKey)
	}
	digest := sha256.Sum256(text)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"report": string(text), "signature": base64.StdEncoding.EncodeToString(signature),
		"certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Leaf.Raw})),
	}, nil
}

// Verify returns the report in the data of a ConfigMap, if a certificate of one of the roots signed it.
func Verify(data map[string]string, roots *x509.CertPool) (Report, error) {
	var report Report
	block, _ := pem.Decode([]byte(data["certificate"]))
	if block == nil {
		return report, errors.New("there is no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return report, fmt.Errorf("reading the certificate: %w", err)
	}
	clients := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(clients); err != nil {
		return report, fmt.Errorf("verifying the certificate: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(data["signature"])
	if err != nil {
		return report, fmt.Errorf("reading the signature: %w", err)
	}
	algorithm := x509.ECDSAWithSHA256
	if certificate.PublicKeyAlgorithm == x509.RSA {
		algorithm = x509.SHA256WithRSA
	}
	if err := certificate.CheckSignature(algorithm, []byte(data["report"]), signature); err != nil {
		return report, fmt.Errorf("verifying the signature: %w", err)
	}
	if err := json.Unmarshal([]byte(data["report"]), &report); err != nil {
		return report, fmt.Errorf("reading the report: %w", err)
	}
	if report.Station != certificate.Subject.CommonName {
		return report, fmt.Errorf("%s signed a report of %s", certificate.Subject.CommonName, report.Station)
	}
	return report, nil
}

// write writes data into the ConfigMap. A signature alone is not a change, because each is another one. A report that
// was closed after the agent began stays closed: the add-on is about to go.
func (s *station) write(ctx context.Context, data map[string]string) error {
	reports := s.hub.CoreV1().ConfigMaps(s.cluster)
	existing, err := reports.Get(ctx, reportName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: reportName}, Data: data}
		_, err = reports.Create(ctx, report, metav1.CreateOptions{})
	case err == nil && s.outdates(existing.Data, data):
		existing.Data = data
		_, err = reports.Update(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the report on the hub: %w", err)
	}
	s.reported = true
	return nil
}

// outdates reports whether data must replace those on the hub.
func (s *station) outdates(existing, data map[string]string) bool {
	if existing[closed] != "" {
		return !s.reported
	}
	return existing["report"] != data["report"] || existing["certificate"] != data["certificate"]
}

// goodbye marks the report as closed: it is the last one.
func goodbye(ctx context.Context, hub kubernetes.Interface, cluster string) error {
	reports := hub.CoreV1().ConfigMaps(cluster)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		report, err := reports.Get(ctx, reportName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if report.Data == nil {
			report.Data = map[string]string{}
		}
		report.Data[closed] = "true"
		_, err = reports.Update(ctx, report, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("closing the report on the hub: %w", err)
	}
	return nil
}
