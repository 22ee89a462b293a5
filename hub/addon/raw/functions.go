package raw

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// functions are the functions of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"notAfter": func(certificate any) (string, error) {
			return ofCertificate(certificate, func(c *x509.Certificate) string { return c.NotAfter.UTC().Format(time.RFC3339) })
		},
		"notBefore": func(certificate any) (string, error) {
			return ofCertificate(certificate, func(c *x509.Certificate) string { return c.NotBefore.UTC().Format(time.RFC3339) })
		},
		"issuer": func(certificate any) (string, error) {
			return ofCertificate(certificate, func(c *x509.Certificate) string { return c.Issuer.CommonName })
		},
		"base64": func(data any) (string, error) {
			raw, err := bytesOf(data)
			return base64.StdEncoding.EncodeToString(raw), err
		},
		"indent": func(width int, data any) (string, error) {
			raw, err := bytesOf(data)
			if width < 0 {
				return "", fmt.Errorf("the width %d is negative", width)
			}
			return strings.ReplaceAll(string(raw), "\n", "\n"+strings.Repeat(" ", width)), err
		},
		"load": load,
		"regexMatch": func(pattern, text string) (bool, error) {
			matched, err := regexp.MatchString(pattern, text)
			if err != nil {
				return false, fmt.Errorf("the pattern %q: %w", pattern, err)
			}
			return matched, nil
		},
	}
}

// bytesOf returns text or bytes as bytes.
func bytesOf(data any) ([]byte, error) {
	switch typed := data.(type) {
	case nil:
		return nil, nil
	case []byte:
		return typed, nil
	case string:
		return []byte(typed), nil
	}
	return nil, fmt.Errorf("%T is neither text nor bytes", data)
}

// ofCertificate returns a property of the first certificate in PEM; nothing for no data.
func ofCertificate(data any, property func(*x509.Certificate) string) (string, error) {
	raw, err := bytesOf(data)
	if err != nil || len(raw) == 0 {
		return "", err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return "", errors.New("the certificate is not in PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("reading the certificate: %w", err)
	}
	return property(certificate), nil
}

// load returns one of several files, which are a value of the author: a map of text or bytes by name.
func load(name string, files any) ([]byte, error) {
	var found any
	var exists bool
	switch typed := files.(type) {
	case map[string][]byte:
		found, exists = typed[name]
	case map[string]string:
		found, exists = typed[name]
	case map[string]any:
		found, exists = typed[name]
	default:
		return nil, fmt.Errorf("%T is no map of files", files)
	}
	if !exists {
		return nil, fmt.Errorf("there is no file %q", name)
	}
	return bytesOf(found)
}
