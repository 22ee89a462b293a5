package hub

import (
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

// floodKinds are the largest objects that a bootstrap credential may create.
func floodKinds() map[string]trimmed {
	return map[string]trimmed{
		"CertificateSigningRequest of a flood": {
			make: func(n int) client.Object {
				return &certificatesv1.CertificateSigningRequest{
					ObjectMeta: metav1.ObjectMeta{
						Name: fmt.Sprintf("flood-%d", n), UID: types.UID(fmt.Sprint("uid-", n)), ManagedFields: managedBy("flood"),
						Labels:      map[string]string{names.LabelClusterName: "victim", "a": strings.Repeat("x", 60)},
						Annotations: map[string]string{"a": strings.Repeat("x", 4000)},
					},
					Spec: certificatesv1.CertificateSigningRequestSpec{
						Request: make([]byte, approve.MaxRequestBytes), SignerName: certificatesv1.KubeAPIServerClientSignerName,
						Username: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers:managedcluster"},
						Extra: map[string]certificatesv1.ExtraValue{"a": {strings.Repeat("x", 1000)}}, Usages: csr.Usages(),
					},
				}
			},
			trim: func(*hubprocess.Trims) func(any) (any, error) { return approve.Trim },
		},
		"ManagedCluster of a flood": {
			make: func(n int) client.Object {
				cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("flood-%d", n), UID: types.UID(fmt.Sprint("uid-", n)), ManagedFields: managedBy("flood"),
					Labels:      map[string]string{"cluster.open-cluster-management.io/clusterset": "default"},
					Annotations: map[string]string{"a": strings.Repeat("x", 8000)},
				}}
				for range 8 {
					cluster.Spec.ManagedClusterClientConfigs = append(cluster.Spec.ManagedClusterClientConfigs,
						clusterv1.ClientConfig{URL: strings.Repeat("u", 2000), CABundle: make([]byte, 1000)})
				}
				return cluster
			},
			trim: func(t *hubprocess.Trims) func(any) (any, error) { return t.Cluster },
		},
	}
}
