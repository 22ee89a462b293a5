package template

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

func TestTheHealthProbeOfATemplate(t *testing.T) {
	for value, want := range map[string]addon.HealthProbe{"": addon.HealthWorkloads, "Lease": addon.HealthLease} {
		u := templateObject("t", "a", "x")
		if value != "" {
			u.SetAnnotations(map[string]string{"addon.spokelet.io/health-probe": value})
		}
		read, err := ReadTemplate(u)
		require.NoError(t, err)
		got, err := read.health()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// Shows: hub/templates-side-by-side
func TestTemplatesOfOneAddOnAreRenderedSideBySide(t *testing.T) {
	versions := map[string]*Compiled{}
	for _, name := range []string{"v1", "v2"} {
		read, err := ReadTemplate(templateObject(name, "a", name+" on {{CLUSTER_NAME}}"))
		require.NoError(t, err)
		versions[name] = Compile(read)
	}
	var all sync.WaitGroup
	for i := range 64 {
		name, cluster := []string{"v1", "v2"}[i%2], "cluster"+strings.Repeat("x", i)
		all.Go(func() {
			result, err := versions[name].Render(Input{
				AddOn: "a", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
			})
			if assert.NoError(t, err) {
				assert.Equal(t, map[string]any{"k": name + " on " + cluster}, result.Objects[0].Object["data"])
			}
		})
	}
	all.Wait()
}

// TestPatternsOfContainersAreThoseOfTheAPI compares the match with the expression that the API describes.
func TestPatternsOfContainersAreThoseOfTheAPI(t *testing.T) {
	var patterns []string
	for _, a := range []string{"", "a", "*", "a*", "*a", "**"} {
		for _, b := range []string{"", "a", "*", "ab*", "*b", "a*b*"} {
			patterns = append(patterns, a+":"+b, a+b)
		}
	}
	ids := []string{"", ":", "a:", ":a", "a:a", "ab:ab", "a:b", "aa:aab", "b:ab", "abab", "aab:abab", "a:abb", "aaa"}
	for _, pattern := range patterns {
		expression := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".+") + "$")
		for _, id := range ids {
			assert.Equal(t, expression.MatchString(id), addon.MatchesID(pattern, id), "%q on %q", pattern, id)
		}
	}
}

func TestAnInitContainerGetsResourcesByItsName(t *testing.T) {
	tests := map[string]struct {
		pattern string
		initial bool
		want    bool
	}{
		"all, for a container":                {"*:*:*", false, true},
		"all, for an init container":          {"*:*:*", true, false},
		"its name, for an init container":     {"*:*:c", true, true},
		"part of its name, for an init one":   {"deployments:d:*c", true, false},
		"another name, for an init container": {"*:*:x", true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, found := resourcesOf("deployments:d", "c", test.initial, rules(test.pattern))
			assert.Equal(t, test.want, found)
		})
	}
}

func rules(patterns ...string) []addonv1beta1.ContainerResourceRequirements {
	var all []addonv1beta1.ContainerResourceRequirements
	for _, pattern := range patterns {
		all = append(all, addonv1beta1.ContainerResourceRequirements{ContainerID: pattern})
	}
	return all
}
