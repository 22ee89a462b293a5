package addonapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

func TestManaged(t *testing.T) {
	const key = "addon.open-cluster-management.io/lifecycle"
	tests := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"without the annotation": {want: true},
		"by the addon manager":   {annotations: map[string]string{key: "addon-manager"}, want: true},
		"emptied by a framework": {annotations: map[string]string{key: ""}, want: true},
		"by itself":              {annotations: map[string]string{key: "self"}},
		"by anything else":       {annotations: map[string]string{key: "someone"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			assert.Equal(t, test.want, addonapi.Managed(management))
		})
	}
}
