package skew

import (
	"fmt"
	"maps"
	"slices"
)

// Judge says what is wrong at the end: clusters and their add-ons are not as they should be, joined again, or were
// uninstalled in between. before is what they were when the add-on was installed, and want is the version that each
// cluster should have, empty for none.
func Judge(before, after map[string]Cluster, want map[string]string) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		first, last := before[name], after[name]
		wrong = append(wrong, problems(name, last, want[name])...)
		if first.Agent != last.Agent {
			wrong = append(wrong, fmt.Sprintf("%s: it joined again, as %s and not %s any more", name, last.Agent, first.Agent))
		}
		if want[name] == "" {
			continue
		}
		if first.AddOn != nil && last.AddOn != nil && first.AddOn.UID != last.AddOn.UID {
			wrong = append(wrong, name+": the add-on was uninstalled and installed again")
		}
		for _, kind := range slices.Sorted(maps.Keys(first.Objects)) {
			if object, there := last.Objects[kind]; there && object.UID != first.Objects[kind].UID {
				wrong = append(wrong, fmt.Sprintf("%s: the %s was made again", name, kind))
			}
		}
	}
	return wrong
}

// problems says why a cluster does not have a version of the add-on, empty for none, and nothing else.
func problems(name string, c Cluster, version string) []string {
	var wrong []string
	note := func(format string, args ...any) { wrong = append(wrong, name+": "+fmt.Sprintf(format, args...)) }
	if !c.Available {
		note("it is not available")
	}
	if version == "" {
		if c.AddOn != nil {
			note("it still has the add-on%s", c.AddOn.Says)
		}
		for _, work := range slices.Sorted(maps.Keys(c.Works)) {
			note("it still has work %s", work)
		}
		for _, kind := range slices.Sorted(maps.Keys(c.Objects)) {
			note("it still has the %s", kind)
		}
		return wrong
	}
	switch a := c.AddOn; {
	case a == nil:
		note("it does not have the add-on")
	case !a.Available || !a.Completed || !a.Configured:
		note("the add-on is not available with what it should have%s", a.Says)
	}
	if len(c.Works) == 0 {
		note("the add-on has no work")
	}
	for _, work := range slices.Sorted(maps.Keys(c.Works)) {
		if w := c.Works[work]; !w.Applied || !w.Available {
			note("work %s is not applied and available", work)
		}
	}
	for _, kind := range []string{"ConfigMap", "Deployment"} {
		if o, there := c.Objects[kind]; !there || o.Version != version {
			note("the %s is of version %q and not %s", kind, o.Version, version)
		}
	}
	return wrong
}

// having counts the clusters whose Deployment is of a version.
func having(version string, seen map[string]Cluster) int {
	n := 0
	for _, c := range seen {
		if c.Objects["Deployment"].Version == version {
			n++
		}
	}
	return n
}

// unreplaced says which of the certificates are still the same.
func unreplaced(before, after map[string]Cluster) []string {
	var same []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, whose := range []string{ofAgent, ofAddOn} {
			if now := after[name].Certificates[whose]; now == "" || now == before[name].Certificates[whose] {
				same = append(same, fmt.Sprintf("%s: the certificate of %s was not replaced", name, whose))
			}
		}
	}
	return same
}

// Differences says where two paths that end with the same hub manager end with other works.
func Differences(reports []Report) []string {
	var wrong []string
	for i, one := range reports {
		for _, other := range reports[:i] {
			if one.Path.last() != other.Path.last() || one.Works == nil || other.Works == nil {
				continue
			}
			for _, work := range slices.Sorted(maps.Keys(one.Works)) {
				if one.Works[work] != other.Works[work] {
					wrong = append(wrong, fmt.Sprintf("work %s is another one after %s than after %s:\n%s\n%s",
						work, one.Path.Name, other.Path.Name, one.Works[work], other.Works[work]))
				}
			}
			if len(one.Works) != len(other.Works) {
				wrong = append(wrong, fmt.Sprintf("%d works after %s, and %d after %s",
					len(one.Works), one.Path.Name, len(other.Works), other.Path.Name))
			}
		}
	}
	return wrong
}
