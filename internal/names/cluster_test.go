package names_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

func TestCheckCluster(t *testing.T) {
	tests := map[string]struct{ name, says string }{
		"an ordinary name can be had":                 {"cluster1", ""},
		"so can the longest one":                      {strings.Repeat("c", 63), ""},
		"one that is like a reserved one can be had":  {"managed-clusters-2", ""},
		"the group of all clusters is no cluster":     {"managed-clusters", "reserved: the group"},
		"a ClusterRole of all clusters is no cluster": {"work", "open-cluster-management:managedcluster:work"},
		"nor is the other one":                        {"registration", "reserved: the ClusterRole"},
		"a namespace of the hub is no cluster":        {"kube-system", "reserved: the namespace"},
		"nor is the one of the hub manager":           {names.NamespaceHub, "reserved: the namespace"},
		"a dot fits in no namespace":                  {"bad.name", "cannot be the name of the namespace"},
		"nor do 64 characters":                        {strings.Repeat("c", 64), "no more than 63"},
		"nor do capitals":                             {"Cluster", "lower case"},
		"nor does nothing":                            {"", "cannot be the name of the namespace"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := names.CheckCluster(tc.name)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}
