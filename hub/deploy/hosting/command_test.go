package hosting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Who may accept one cluster writes its list of clusters, and on a hub without policies its agent does, or who created
// it. The hub manager puts the list into a command for an administrator of the hub: names of clusters alone belong there.
func TestACommandHasNothingOfAListThatMeansSomethingToAShell(t *testing.T) {
	for _, list := range []string{"$(id)", "a;id", "a --all", "`id`", "a|id,b"} {
		host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: "host", Annotations: map[string]string{names.AnnotationHosts: list},
		}}
		got := Listing(host, "c1")
		quoted := strings.HasPrefix(got, "'") && strings.HasSuffix(got, "'")
		assert.True(t, quoted || !strings.ContainsAny(got, "$;`| "), got)
	}
}
