package report

import "strings"

// IsPlainName reports whether a shell and kubectl take a name for a name and nothing else: letters, digits and a few
// marks, of which "-" does not begin it. Kubernetes takes more in the names of certificate requests, and nobody has
// checked the names in a bundle.
func IsPlainName(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isPlain(r) && !strings.ContainsRune(".-_:/", r) })
}

// Command puts names into a command that an answer tells a person to run; of are pairs of a place in the text and what
// belongs there. Where one of them is not plain, the answer says in words where to look for an object of the kind.
func Command(kind, text string, of ...string) string {
	for i := 0; i+1 < len(of); i += 2 {
		if strings.Contains(text, of[i]) && !IsPlainName(of[i+1]) {
			return lookAround(kind)
		}
	}
	return strings.NewReplacer(of...).Replace(text)
}

// lookAround says where to look for an object whose name no command can have.
func lookAround(kind string) string {
	const (
		named  = ", and look at the one whose name is not plain"
		placed = ", and look at the one whose name or namespace is not plain"
	)
	switch kind {
	case KindCluster:
		return "kubectl get managedclusters" + named
	case KindDefinition:
		return "kubectl get clustermanagementaddons" + named
	case KindRequest:
		return "kubectl get csr" + named
	case KindAddOn:
		return "kubectl get managedclusteraddons -A" + placed
	case KindWork:
		return "kubectl get manifestworks -A" + placed
	}
	return "look for the object whose name or namespace is not plain"
}
