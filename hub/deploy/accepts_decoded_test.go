package deploy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// With the definitions of OCM, everybody with a bootstrap credential can create a cluster that Go cannot decode.
func TestAClusterThatCannotBeDecodedKeepsNoRoleFromOthers(t *testing.T) {
	const count = 40
	item := func(name, more string) string {
		return fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",`+
			`"metadata":{"name":%q,"uid":"uid-%s"},"spec":{"hubAcceptsClient":true%s}}`, name, name, more)
	}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := []string{item("bad", `,"leaseDurationSeconds":99999999999`)}
		if one, named := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); named {
			items = []string{item(one, "")}
		} else {
			for i := range count {
				items = append(items, item(fmt.Sprintf("c%d", i), ""))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList",`+
			`"metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(hub.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), meta.RESTScopeRoot)
	live, err := client.New(&rest.Config{Host: hub.URL}, client.Options{Scheme: hubScheme(t), Mapper: mapper})
	require.NoError(t, err)
	r := &Reconciler{Live: live}
	binds := plan{bindings: []bindingStep{{Verb: reconcile.Create, After: &rbacv1.RoleBinding{}}}}
	for i := range count {
		cluster := clusterThatIs(fmt.Sprintf("c%d", i), true)
		cluster.UID = types.UID("uid-" + cluster.Name)
		_, err := r.grants(t.Context(), facts{cluster: cluster}, binds)
		assert.NoError(t, err, cluster.Name)
	}
}
