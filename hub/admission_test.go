package hub

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/spokelet/spokelet/hub/webhook"
)

func TestWhereTheAdmissionIsServed(t *testing.T) {
	address, path := "https://10.0.0.1:9443/convert", webhook.PathValidateWork
	for sentence, tc := range map[string]struct {
		conversion apiextensionsv1.WebhookClientConfig
		want       admissionregistrationv1.WebhookClientConfig
	}{
		"at the address of the conversion": {
			apiextensionsv1.WebhookClientConfig{URL: &address, CABundle: []byte("ca")},
			admissionregistrationv1.WebhookClientConfig{URL: new("https://10.0.0.1:9443" + path), CABundle: []byte("ca")},
		},
		"at the service of the conversion": {
			apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Namespace: "n", Name: "s"}, CABundle: []byte("ca"),
			},
			admissionregistrationv1.WebhookClientConfig{
				Service:  &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "s", Path: &path},
				CABundle: []byte("ca"),
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, admissionAt(&tc.conversion, path))
		})
	}
}

func TestTheAdmissionIsNotAnnouncedBeforeItIsServed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	a := &announcer{config: DefaultConfig(), started: func(*http.Request) error {
		looks++
		if looks == 3 {
			cancel()
		}
		return errors.New("not yet")
	}}
	require.NoError(t, a.Start(ctx), "the end of the hub manager is no error")
	assert.Equal(t, 3, looks)
	assert.False(t, a.NeedLeaderElection(), "every replica announces it")
}
