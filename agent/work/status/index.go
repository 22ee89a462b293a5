package status

import workv1 "open-cluster-management.io/api/work/v1"

// Former finds the status of a manifest in an earlier status.
type Former struct {
	exact map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
	loose map[workv1.ManifestResourceMeta][]*workv1.ManifestCondition
}

// Index indexes the manifests of a status.
func Index(list []workv1.ManifestCondition) Former {
	f := Former{
		exact: make(map[workv1.ManifestResourceMeta]*workv1.ManifestCondition, len(list)),
		loose: make(map[workv1.ManifestResourceMeta][]*workv1.ManifestCondition, len(list)),
	}
	for i := range list {
		f.exact[list[i].ResourceMeta] = &list[i]
		key := withoutOrdinal(list[i].ResourceMeta)
		f.loose[key] = append(f.loose[key], &list[i])
	}
	return f
}

// Find returns the earlier status by the whole meta, else by all of it but the ordinal if that is unique, else nil.
func (f Former) Find(m workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	if exact := f.exact[m]; exact != nil {
		return exact
	}
	if loose := f.loose[withoutOrdinal(m)]; len(loose) == 1 {
		return loose[0]
	}
	return nil
}

// withoutOrdinal is the meta without its place in the list.
func withoutOrdinal(m workv1.ManifestResourceMeta) workv1.ManifestResourceMeta {
	m.Ordinal = 0
	return m
}
