package ship_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var update = flag.Bool("update", false, "write the golden file")

const golden = "testdata/rbac.golden"

// TestAllRights compares every role that ships, and whom it is bound to, with the golden file, so that a change of
// rights shows in a review. "go test . -run TestAllRights -update" writes it.
func TestAllRights(t *testing.T) {
	text := "# Every role that ships, the rights in it, and whom it is bound to.\n"
	all := variants()
	for _, folder := range []string{
		"manifests/overlays/klusterlet-executor", "manifests/overlays/klusterlet-hosted-addons",
		"manifests/samples/hello", "manifests/samples/hub-config",
	} {
		all[folder] = variant{folder: folder}
	}
	printed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		rights := rightsOf(t, kustomized(t, v.folder))
		if same := printed[rights]; same != "" {
			text += "\n## " + v.folder + "\n\nThe same as " + same + ".\n"
		} else {
			text += "\n## " + v.folder + "\n\n" + rights
		}
		printed[rights] = v.folder
		if v.values == nil {
			continue
		}
		if helm := rightsOf(t, v.byHelm(t)); helm != rights {
			text += "\n## the chart: " + name + "\n\n" + helm
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "rights changed: go test . -run TestAllRights -update")
}

// role is a ClusterRole or a Role, of which a ClusterRole has the most fields.
type role struct {
	rbacv1.ClusterRole
	bound []string
}

// rightsOf prints the roles among objects, sorted by kind, namespace and name.
func rightsOf(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	roles := map[string]*role{}
	for _, o := range objects {
		if kind := o.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		r := &role{}
		into := &r.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true))
		roles[title(o.GetKind(), o.GetNamespace(), o.GetName())] = r
	}
	for _, o := range objects {
		if kind := o.GetKind(); kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &binding, true))
		namespace, where := "", ""
		if binding.RoleRef.Kind == "Role" {
			namespace = binding.Namespace
		} else if binding.Namespace != "" {
			where = " in namespace " + binding.Namespace
		}
		key := title(binding.RoleRef.Kind, namespace, binding.RoleRef.Name)
		if roles[key] == nil {
			roles[key] = &role{}
		}
		for _, subject := range binding.Subjects {
			who := subject.Kind + " " + strings.TrimPrefix(subject.Namespace+"/"+subject.Name, "/")
			roles[key].bound = append(roles[key].bound, who+where)
		}
	}
	var text string
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		text += name + "\n" + roles[name].String()
	}
	return text
}

// title names a role.
func title(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// String prints one line for each subject and each resource.
func (r *role) String() string {
	var lines []string
	for _, rule := range r.Rules {
		verbs := strings.Join(slices.Sorted(slices.Values(rule.Verbs)), " ")
		names := ""
		if len(rule.ResourceNames) > 0 {
			names = " [" + strings.Join(slices.Sorted(slices.Values(rule.ResourceNames)), " ") + "]"
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				lines = append(lines, fmt.Sprintf("    %s %s%s: %s\n", cmp.Or(group, "core"), resource, names, verbs))
			}
		}
		for _, url := range rule.NonResourceURLs {
			lines = append(lines, fmt.Sprintf("    %s: %s\n", url, verbs))
		}
	}
	if r.AggregationRule != nil {
		for _, selector := range r.AggregationRule.ClusterRoleSelectors {
			lines = append(lines, fmt.Sprintf("    all ClusterRoles with the labels %v\n", selector.MatchLabels))
		}
	}
	slices.Sort(lines)
	text := ""
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		text += fmt.Sprintf("  label %s=%s\n", key, r.Labels[key])
	}
	slices.Sort(r.bound)
	for _, who := range r.bound {
		text += "  bound to " + who + "\n"
	}
	return text + strings.Join(lines, "")
}
