package attacks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const decoyedTemplate = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: decoyed}
spec:
  addonName: decoyed
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: OBJECT, namespace: default}}]}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: decoyed}
spec:
  installStrategy: {type: Manual}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: decoyed}}
`

// The author may create works and edit those of some names. They have the label of an add-on and an object of it, and
// are edited all the time.
//
// Shows: security/decoys
func TestAnAuthorOfWorksCannotHoldAnAddOnByDecoys(t *testing.T) {
	const many, user, addOn = 30, "works@example.com", "decoyed"
	decoys := make([]string, many)
	for n := range decoys {
		decoys[n] = fmt.Sprint("decoy-", n)
	}
	createForTest(t, &rbacv1.Role{ObjectMeta: in("cluster10", "decoys"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"patch"},
			ResourceNames: decoys,
		},
	}})
	createForTest(t, &rbacv1.RoleBinding{
		ObjectMeta: in("cluster10", "decoys"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "decoys"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config, err := shared.plane.User(user)
	require.NoError(t, err)
	config.QPS = -1
	author, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)

	apply := func(object string) {
		template := bytes.ReplaceAll([]byte(decoyedTemplate), []byte("OBJECT"), []byte(object))
		require.NoError(t, shared.plane.Apply(t.Context(), template))
	}
	has := func(object string) error {
		work := &workv1.ManifestWork{}
		key := client.ObjectKey{Namespace: "cluster10", Name: "addon-decoyed-deploy-0"}
		if err := shared.admin.Get(t.Context(), key, work); err != nil {
			return err
		}
		raw, err := json.Marshal(work.Spec.Workload)
		if err == nil && !strings.Contains(string(raw), `"name":"`+object+`"`) {
			err = fmt.Errorf("the work is %s", raw)
		}
		return err
	}
	apply("first")
	suite.Eventually(t, func() error {
		return client.IgnoreAlreadyExists(shared.enable(t.Context(), client.ObjectKey{Namespace: "cluster10", Name: addOn}))
	})
	deleteAfterwards(t, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster10", addOn)})
	suite.Eventually(t, func() error { return has("first") })

	// Nobody edits: a change arrives at once.
	apply("second")
	suite.Eventually(t, func() error { return has("second") })

	for _, name := range decoys {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster10", Name: name, Labels: map[string]string{names.LabelAddonName: addOn},
		}}
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"second","namespace":"default"}}`),
		}}}
		suite.Eventually(t, func() error { return client.IgnoreAlreadyExists(author.Create(t.Context(), work.DeepCopy())) })
		deleteAfterwards(t, work)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var edits atomic.Int64
	for worker := range 4 {
		all.Go(func() {
			for n := worker; ctx.Err() == nil; n += 4 {
				patch := fmt.Sprintf(`{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":`+
					`{"name":"second","namespace":"default"},"data":{"n":"%d"}}]}}}`, n)
				if change(&workv1.ManifestWork{ObjectMeta: in("cluster10", decoys[n%many])}, patch)(ctx, author) == nil {
					edits.Add(1)
				}
			}
		})
	}
	defer all.Wait()
	defer cancel()
	suite.Eventually(t, suite.True("the author to have edited", func() bool { return edits.Load() > 100 }))
	apply("third")
	suite.Eventually(t, func() error { return has("third") })
}
