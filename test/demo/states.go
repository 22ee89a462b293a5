package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// states reads add-ons into a tree that has, for each cluster, the state, the template, the hosting cluster, and every
// condition that is not as it is when all is well. A condition that another one repeats is left out.
func (v view) states(ctx context.Context, addOns ...string) (*node, error) {
	root := &node{}
	for _, name := range addOns {
		child := node{text: "add-on " + name}
		var cma addonv1beta1.ClusterManagementAddOn
		if err := v.hub.Get(ctx, client.ObjectKey{Name: name}, &cma); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading add-on %s: %w", name, err)
		}
		for _, progression := range cma.Status.InstallProgressions {
			text := "placement " + progression.Name
			if c := meta.FindStatusCondition(progression.Conditions, "Progressing"); c != nil {
				text += "  " + c.Reason + ": " + c.Message
			}
			child.leaf("%s", text)
		}
		var all addonv1beta1.ManagedClusterAddOnList
		if err := v.hub.List(ctx, &all); err != nil {
			return nil, fmt.Errorf("listing the installed add-ons: %w", err)
		}
		for i := range all.Items {
			if all.Items[i].Name == name {
				child.children = append(child.children, stateNode(&all.Items[i]))
			}
		}
		root.children = append(root.children, child)
	}
	return root, nil
}

func stateNode(addOn *addonv1beta1.ManagedClusterAddOn) node {
	parts := []string{availability(addOn)}
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.Resource == "addontemplates" {
			parts = append(parts, templateOf(reference))
		}
	}
	hosting := addOn.Annotations[addonv1beta1.HostingClusterNameAnnotationKey]
	if hosting != "" {
		parts = append(parts, "hosted on "+hosting)
	}
	if !addOn.DeletionTimestamp.IsZero() {
		parts = append(parts, "being deleted")
	}
	n := node{text: fmt.Sprintf("%s  %s", addOn.Namespace, strings.Join(parts, ", "))}
	var shown []metav1.Condition
	for _, c := range addOn.Status.Conditions {
		if !isAsUsual(c) || hosting != "" && strings.HasPrefix(c.Type, "Hosting") {
			shown = append(shown, c)
		}
	}
	repeated := func(c metav1.Condition) bool { return isRepeated(c, shown) }
	addConditions(&n, slices.DeleteFunc(slices.Clone(shown), repeated))
	return n
}

// isRepeated reports whether another condition has all that the message of a condition has, and more.
func isRepeated(c metav1.Condition, among []metav1.Condition) bool {
	return slices.ContainsFunc(among, func(other metav1.Condition) bool {
		return len(other.Message) > len(c.Message) && strings.Contains(other.Message, c.Message)
	})
}

func availability(addOn *addonv1beta1.ManagedClusterAddOn) string {
	switch c := meta.FindStatusCondition(addOn.Status.Conditions, "Available"); {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return "not known whether available"
	case c.Status == metav1.ConditionTrue:
		return "available"
	}
	return "not available"
}

// templateOf names the template that a cluster has, and the one that it moves to.
func templateOf(reference addonv1beta1.ConfigReference) string {
	desired, applied := reference.DesiredConfig, reference.LastAppliedConfig
	switch {
	case desired == nil:
		return "no template yet"
	case applied == nil:
		return "gets template " + desired.Name
	case *applied != *desired:
		return "template " + applied.Name + ", gets " + desired.Name
	}
	return "template " + applied.Name
}

// isAsUsual reports whether a condition is as it is when all is well and nothing is under way.
func isAsUsual(c metav1.Condition) bool {
	switch c.Type {
	case addonv1beta1.ManagedClusterAddOnConditionProgressing:
		return c.Reason == addonv1beta1.ProgressingReasonCompleted
	case "addon.spokelet.io/Deleting", "Degraded":
		return false
	}
	return c.Status == metav1.ConditionTrue
}
