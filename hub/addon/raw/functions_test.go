package raw_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
)

// certificate returns a self-signed certificate for the year 2030.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	from := time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weather-ca"}, NotBefore: from,
		NotAfter: from.AddDate(1, 0, 0),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func TestFunctions(t *testing.T) {
	values := addon.Values{
		"CA": certificate(t), "Bytes": []byte("hi"), "Text": "a: 1\nb: 2", "Files": map[string]string{"x": "y"},
	}
	tests := map[string]struct{ template, want, says string }{
		"the end of a certificate":           {`a: "{{ notAfter .CA }}"`, `{"a":"2031-01-01T00:00:00Z"}`, ""},
		"its beginning":                      {`a: "{{ notBefore .CA }}"`, `{"a":"2030-01-01T00:00:00Z"}`, ""},
		"its issuer":                         {`a: {{ issuer .CA }}`, `{"a":"weather-ca"}`, ""},
		"no certificate has none":            {`a: "{{ issuer .Nowhere }}"`, `{"a":""}`, ""},
		"text is no certificate":             {`a: "{{ issuer .Text }}"`, "", "not in PEM"},
		"bytes in Base64":                    {`a: {{ base64 .Bytes }}`, `{"a":"aGk="}`, ""},
		"text in Base64":                     {`a: {{ base64 "hi" }}`, `{"a":"aGk="}`, ""},
		"an indented text":                   {"a:\n  {{ indent 2 .Text }}", `{"a":{"a":1,"b":2}}`, ""},
		"not to the left":                    {"a: {{ indent -1 .Text }}", "", "the width -1 is negative"},
		"a file among several":               {`a: {{ load "x" .Files | base64 }}`, `{"a":"eQ=="}`, ""},
		"that must exist":                    {`a: {{ load "z" .Files | base64 }}`, "", `there is no file "z"`},
		"among files":                        {`a: {{ load "z" .Text | base64 }}`, "", "string is no map of files"},
		"a pattern that matches":             {`a: {{ regexMatch "^.+:agent$" "deployments:agent" }}`, `{"a":true}`, ""},
		"a pattern that does not":            {`a: {{ regexMatch "^agent$" "deployments:agent" }}`, `{"a":false}`, ""},
		"a number is no text for a function": {`a: {{ indent 1 1 }}`, "", "int is neither text nor bytes"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, err := rendered(t, map[string]string{"a.yaml": tc.template}, input(values))
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{tc.want}, got)
		})
	}
}
