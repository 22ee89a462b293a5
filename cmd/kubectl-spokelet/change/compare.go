package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/render"
)

// Kind says how an object or a field differs.
type Kind string

// The kinds of differences, in the order in which they are shown.
const (
	Removed Kind = "removed"
	Changed Kind = "changed"
	Added   Kind = "added"
)

// Difference is an object that differs, or a role or an identity that its agent has on the hub.
type Difference struct {
	Kind Kind `json:"change"`
	// What names it: kind, namespace and name, or a sentence.
	What string `json:"what"`
	// Fields are those that differ; none where the whole object was added or removed.
	Fields []Field `json:"fields,omitempty"`
}

// Group are clusters with the same differences.
type Group struct {
	// Clusters are their names, sorted.
	Clusters []string `json:"clusters"`
	// Differences are those of the first cluster. The others have the same, with their own names in them.
	Differences []Difference `json:"differences,omitempty"`
	// Problem is why the changed add-on would not be deployed; empty when it would.
	Problem string `json:"problem,omitempty"`
	// Before is why the present one is not deployed, and nothing is compared; empty when it is.
	Before string `json:"before,omitempty"`
}

// Compare returns what differs between two renderings of one add-on, the largest group first. Clusters on which nothing
// differs are in no group.
func Compare(before, after []render.Deployment) ([]Group, error) {
	had, gets := byCluster(before), byCluster(after)
	groups := map[string]*Group{}
	for _, cluster := range slices.Sorted(maps.Keys(union(had, gets))) {
		one, err := compare(had[cluster], gets[cluster])
		if err != nil {
			return nil, fmt.Errorf("comparing what cluster %s gets: %w", cluster, err)
		}
		if len(one.Differences) == 0 && one.Problem == "" {
			continue
		}
		key, err := keyOf(one, cluster)
		if err != nil {
			return nil, err
		}
		if groups[key] == nil {
			groups[key] = &one
		}
		groups[key].Clusters = append(groups[key].Clusters, cluster)
	}
	all := make([]Group, 0, len(groups))
	for _, group := range groups {
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Clusters), len(a.Clusters)), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return all, nil
}

// Changes reports whether anything changes on the clusters of the group: where the add-on is not deployed for the same
// reason before and after, the change has no part in it.
func (g Group) Changes() bool { return g.Problem == "" || g.Problem != g.Before }

// Clusters returns the names of the clusters of groups that would change, sorted.
func Clusters(groups []Group) []string {
	var all []string
	for _, group := range groups {
		if group.Problem == "" {
			all = append(all, group.Clusters...)
		}
	}
	slices.Sort(all)
	return all
}

func byCluster(all []render.Deployment) map[string]*render.Deployment {
	of := make(map[string]*render.Deployment, len(all))
	for i := range all {
		of[all[i].Cluster] = &all[i]
	}
	return of
}

func union(a, b map[string]*render.Deployment) map[string]bool {
	all := make(map[string]bool, len(a))
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return all
}

// keyOf is equal for clusters with the same differences but for their names in them.
func keyOf(group Group, cluster string) (string, error) {
	raw, err := json.Marshal(group)
	if err != nil {
		return "", fmt.Errorf("encoding the differences of cluster %s: %w", cluster, err)
	}
	var key strings.Builder
	for len(raw) > 0 {
		end := slices.IndexFunc(raw, func(b byte) bool { return !isOfName(b) })
		if end < 0 {
			end = len(raw)
		}
		if string(raw[:end]) == cluster {
			key.WriteByte(0)
		} else {
			key.Write(raw[:end])
		}
		rest := slices.IndexFunc(raw[end:], isOfName)
		if rest < 0 {
			rest = len(raw) - end
		}
		key.Write(raw[end : end+rest])
		raw = raw[end+rest:]
	}
	return key.String(), nil
}

// isOfName reports whether a byte may be in the name of a cluster.
func isOfName(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-'
}

// compare compares one add-on on one cluster; nil for an add-on that is not there.
func compare(before, after *render.Deployment) (Group, error) {
	var g Group
	if before != nil && before.Err != nil {
		g.Before = before.Err.Error()
	}
	if after != nil && after.Err != nil {
		g.Problem = after.Err.Error()
		return g, nil //nolint:nilerr // The answer has it.
	}
	if g.Before != "" {
		before = nil
	}
	var had, gets map[string]*unstructured.Unstructured
	if before != nil {
		had = objectsOf(before)
	}
	if after != nil {
		gets = objectsOf(after)
	}
	for name, old := range had {
		if gets[name] == nil {
			g.Differences = append(g.Differences, Difference{Kind: Removed, What: name})
			continue
		}
		if reflect.DeepEqual(old.Object, gets[name].Object) {
			continue
		}
		fields, err := fieldsOf(old, gets[name])
		if err != nil {
			return g, fmt.Errorf("%s: %w", name, err)
		}
		g.Differences = append(g.Differences, Difference{Kind: Changed, What: name, Fields: fields})
	}
	for name := range gets {
		if had[name] == nil {
			g.Differences = append(g.Differences, Difference{Kind: Added, What: name})
		}
	}
	g.Differences = append(g.Differences, sentences(before, after)...)
	order := []Kind{Removed, Changed, Added}
	slices.SortFunc(g.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), strings.Compare(a.What, b.What))
	})
	return g, nil
}

// objectsOf returns the objects of a deployment by their names for people.
func objectsOf(d *render.Deployment) map[string]*unstructured.Unstructured {
	all := make(map[string]*unstructured.Unstructured, len(d.Objects))
	for _, object := range d.Objects {
		name := object.GetKind() + " " + object.GetName()
		if object.GetNamespace() != "" {
			name = object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		}
		if group := object.GroupVersionKind().Group; strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
			name += " (" + group + ")"
		}
		if object.Host {
			name += ", on the hosting cluster"
		}
		if object.Hook {
			name += ", when the add-on is deleted"
		}
		all[name] = object.Unstructured
	}
	return all
}

// sentences compares roles and identities on the hub.
func sentences(before, after *render.Deployment) []Difference {
	texts := func(d *render.Deployment) map[string]bool {
		all := map[string]bool{}
		if d == nil {
			return all
		}
		for _, role := range d.Roles {
			all["on the hub: "+role] = true
		}
		for _, identity := range d.Credentials {
			all["on the hub: "+identity] = true
		}
		return all
	}
	had, gets := texts(before), texts(after)
	var all []Difference
	for text := range had {
		if !gets[text] {
			all = append(all, Difference{Kind: Removed, What: text})
		}
	}
	for text := range gets {
		if !had[text] {
			all = append(all, Difference{Kind: Added, What: text})
		}
	}
	return all
}
