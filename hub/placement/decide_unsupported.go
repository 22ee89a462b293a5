package placement

import (
	"fmt"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// unsupported returns an error that names the first field that this controller does not support; nil when it supports
// all that are used.
func unsupported(spec clusterv1beta1.PlacementSpec) error {
	for _, f := range []struct {
		path string
		used bool
	}{
		{"spec.prioritizerPolicy.configurations", len(spec.PrioritizerPolicy.Configurations) > 0},
		{"spec.prioritizerPolicy.mode", !oneOf(spec.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)},
		{"spec.spreadPolicy.spreadConstraints", len(spec.SpreadPolicy.SpreadConstraints) > 0},
		{"spec.sortBy", !oneOf(spec.SortBy, clusterv1beta1.PlacementSortByClusterName)},
	} {
		if f.used {
			return refuse(f.path)
		}
	}
	return nil
}

func refuse(path string) error {
	return fmt.Errorf("%s is not supported by the placement controller of this hub: remove the field, or start the hub "+
		"manager with --placement=false and run a placement controller that supports it", path)
}

// oneOf reports whether a field is unset or has the only supported value.
func oneOf[T ~string](have, supported T) bool { return have == "" || have == supported }
