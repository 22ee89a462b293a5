package hub

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestUninstallDeletesNoSecretWithoutAName(t *testing.T) {
	for secret, want := range map[string][]string{"": nil, "s": {"s"}} {
		var deleted []string
		record := interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				deleted = append(deleted, o.GetName())
				return nil
			},
		}
		u := &uninstaller{
			config: Config{Namespace: "ns", WebhookSecret: secret}, out: t.Output(),
			client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), record),
		}
		require.NoError(t, u.removeCertificate(t.Context()))
		assert.Equal(t, want, deleted)
	}
}
