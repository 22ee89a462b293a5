package names_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

func TestCheckEverywhere(t *testing.T) {
	for _, role := range []string{"reader", "admin", "open-cluster-management:addons:x", "my-cluster-admin"} {
		require.NoError(t, names.CheckEverywhere(role))
	}
	for _, role := range []string{
		"cluster-admin", "system:masters", "system:kube-controller-manager", "open-cluster-management:spokelet-hub",
		"open-cluster-management:managedcluster:work", "open-cluster-management:bootstrap",
	} {
		require.ErrorContains(t, names.CheckEverywhere(role), "never bound for an add-on in all namespaces", role)
	}
	for _, role := range []string{
		"reader --resource-name=secret-reader", "reader; reboot", "$(reboot)", "reader,other", "a/b", "'", "a\nb", "*",
	} {
		require.ErrorContains(t, names.CheckEverywhere(role), "other characters than letters", role)
	}
}

func TestCheckPermission(t *testing.T) {
	tests := map[string]struct{ namespace, role, says string }{
		"a role of the author's own can be had":       {"ns", "reader", ""},
		"so can one in the namespace of bootstrap":    {names.NamespaceBootstrap, "cm-reader", ""},
		"none in kube-system":                         {"kube-system", "reader", "namespace kube-system belongs to Kubernetes"},
		"none in kube-public":                         {"kube-public", "reader", "belongs to Kubernetes"},
		"none in kube-node-lease":                     {"kube-node-lease", "reader", "belongs to Kubernetes"},
		"none where the hub manager runs":             {"home", "reader", "namespace home belongs to the hub manager"},
		"none where it runs by default":               {names.NamespaceHub, "reader", "belongs to the hub manager"},
		"not the role of the hub manager":             {"ns", "open-cluster-management:spokelet-hub", "never bound"},
		"nor what is aggregated of consents":          {"ns", "open-cluster-management:spokelet-hub:hub-permissions", "never bound"},
		"nor the roles of clusters":                   {"ns", "open-cluster-management:managedcluster:work", "never bound"},
		"nor the role to join":                        {"ns", "open-cluster-management:bootstrap", "never bound"},
		"nor that for works without an executor":      {"ns", "open-cluster-management:cluster-manager-work-executor-admin:webhook", "never bound"},
		"a role of another add-on of OCM is like any": {"ns", "open-cluster-management:addons:x", ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := names.CheckPermission(tc.namespace, tc.role, "home")
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}
