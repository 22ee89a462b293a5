package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// wholes are resources of which a rendering needs whole objects, besides the clusters, the add-on and its definition.
func wholes() []Resource {
	return []Resource{
		{Group: addonv1beta1.GroupName, Version: "v1alpha1", Plural: "addontemplates"},
		{Group: addonv1beta1.GroupName, Plural: "addondeploymentconfigs", Namespaced: true},
		ResourceOf[Placement](), ResourceOf[Decision](),
	}
}

// Whole reads, as they are, all objects from which an add-on is rendered. What may not be read is a gap, and so are
// clusters and add-ons on them that cannot be decoded: agents write their status.
func Whole(ctx context.Context, r *Reader, addOn string) ([]json.RawMessage, error) {
	queries := []Query{
		{Resource: ResourceOf[Cluster]()}, {Resource: ResourceOf[AddOn](), Name: addOn},
		{Resource: ResourceOf[Definition](), Name: addOn},
	}
	for _, whole := range wholes() {
		queries = append(queries, Query{Resource: whole})
	}
	return Raw(ctx, r, queries...)
}

// Raw reads objects as they are. What may not be read is a gap.
func Raw(ctx context.Context, r *Reader, queries ...Query) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, q := range queries {
		before := len(all)
		_, err := r.each(ctx, q, func() { all = all[:before] }, func(page []byte) error {
			var list struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal(page, &list); err != nil {
				return fmt.Errorf("decoding %s: %w", q.Resource, err)
			}
			for _, item := range list.Items {
				if err := decodes(q.Resource, item); err != nil {
					r.undecoded(q, item, err)
					continue
				}
				all = append(all, item)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// decodes returns why a cluster or an add-on on one cannot be decoded; nil for others, which no agent writes.
func decodes(of Resource, raw json.RawMessage) error {
	switch of {
	case ResourceOf[Cluster]():
		return json.Unmarshal(raw, &Cluster{})
	case ResourceOf[AddOn]():
		return json.Unmarshal(raw, &AddOn{})
	}
	return nil
}
