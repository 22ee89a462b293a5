package simulated

import (
	"errors"
	"fmt"
)

// decisionPage is how many clusters are in one PlacementDecision.
const decisionPage = 100

// began is when the objects of the fleet were made.
const began = "2026-11-01T12:00:00Z"

// condition is a condition of an object.
func condition(kind, status, reason, text string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": text, "lastTransitionTime": began,
		"observedGeneration": 1,
	}
}

// Large is a hub with clusters, each with add-ons. Of a hundred clusters one is silent, and of fifty add-ons one has an
// image that cannot be pulled.
func Large(clusterCount, addOnCount int) (*Hub, error) {
	h := &Hub{lists: map[string][]object{}}
	for _, list := range []string{
		clusters, addOns, definitions, decisions, works, requests, leases, events, templates, configs, placements,
	} {
		h.lists[list] = nil
	}
	var failed []error
	for a := range addOnCount {
		name := fmt.Sprintf("addon-%02d", a)
		failed = append(failed,
			h.add(definitions, object{name: name}, map[string]any{
				"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn",
				"spec": definition(name),
			}),
			h.add(templates, object{name: name}, template(name)))
	}
	var selected []any
	for c := range clusterCount {
		name := fmt.Sprintf("store-%04d", c)
		available := condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable",
			"Managed cluster is available")
		if c%100 == 99 {
			available = condition("ManagedClusterConditionAvailable", "Unknown", "ManagedClusterLeaseUpdateStopped",
				"Registration agent stopped updating its lease.")
		}
		failed = append(failed, h.add(clusters, object{
			name: name, labels: map[string]string{"region": fmt.Sprint(c % 9)},
		}, map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
			"spec": map[string]any{"hubAcceptsClient": true, "leaseDurationSeconds": 60},
			"status": map[string]any{"conditions": []any{
				condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
				condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"), available,
			}},
		}))
		for a := range addOnCount {
			failed = append(failed, h.addOn(name, a, c*addOnCount+a))
		}
		selected = append(selected, map[string]any{"clusterName": name, "reason": ""})
		if len(selected) == decisionPage || c == clusterCount-1 {
			page := object{namespace: "add-ons", name: fmt.Sprintf("all-decision-%d", c), labels: map[string]string{
				"cluster.open-cluster-management.io/placement":            "all",
				"cluster.open-cluster-management.io/decision-group-index": "0",
			}}
			failed = append(failed, h.add(decisions, page, map[string]any{
				"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
				"status": map[string]any{"decisions": selected},
			}))
			selected = nil
		}
	}
	failed = append(failed, h.add(placements, object{namespace: "add-ons", name: "all"}, map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "spec": map[string]any{},
	}))
	return h, errors.Join(failed...)
}

// definition is the spec of a ClusterManagementAddOn that is made of a template.
func definition(name string) map[string]any {
	const group = "addon.open-cluster-management.io"
	return map[string]any{
		"defaultConfigs": []any{map[string]any{"group": group, "resource": "addontemplates", "name": name}},
		"installStrategy": map[string]any{"type": "Placements", "placements": []any{map[string]any{
			"name": "all", "namespace": "add-ons",
			"rolloutStrategy": map[string]any{"type": "Progressive", "progressive": map[string]any{"maxConcurrency": "2%"}},
		}}},
	}
}

// template is an AddOnTemplate with a Deployment.
func template(name string) map[string]any {
	return map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
		"spec": map[string]any{"addonName": name, "agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{
			map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "agent", "namespace": name},
				"spec": map[string]any{
					"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": name}},
						"spec": map[string]any{"containers": []any{map[string]any{
							"name": "agent", "image": "registry.local/" + name + ":1.9", "args": []any{"--cluster={{CLUSTER_NAME}}"},
						}}},
					},
				},
			},
		}}}},
	}
}

// addOn adds one add-on on a cluster, with its work.
func (h *Hub) addOn(cluster string, number, index int) error {
	name := fmt.Sprintf("addon-%02d", number)
	available := condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", name+" add-on is available.")
	conditions := []any{
		condition("ManifestApplied", "True", "AddonManifestApplied", "manifests of addon are applied successfully"),
		condition("RegistrationApplied", "True", "SetPermissionApplied", "Registration of the addon agent is configured"),
		condition("ClusterCertificateRotated", "True", "ClientCertificateUpdated", "client certificate rotated"),
		condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured"),
		condition("Progressing", "False", "Completed", "completed with no errors."),
	}
	if index%50 == 49 {
		available = condition("Available", "False", "ProbeUnavailable", "Deployment "+name+"/agent is not ready")
		conditions = append(conditions, condition("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady",
			"Deployment "+name+"/agent is not ready. Pod "+name+"/agent-6c9f-x2: image registry.local/agent:1.10 of "+
				"container agent cannot be pulled (ImagePullBackOff): manifest unknown"))
	}
	hash := map[string]any{"name": name, "specHash": "1f0c4c1f6f6b1d3f0a2f4c9b7e8d5a6b"}
	err := h.add(addOns, object{namespace: cluster, name: name}, map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn",
		"spec": map[string]any{},
		"status": map[string]any{
			"conditions": append(conditions, available), "namespace": name,
			"configReferences": []any{map[string]any{
				"group": "addon.open-cluster-management.io", "resource": "addontemplates", "desiredConfig": hash,
				"lastAppliedConfig": hash,
			}},
		},
	})
	work := h.add(works, object{
		namespace: cluster, name: "addon-" + name + "-deploy-0",
		labels: map[string]string{"open-cluster-management.io/addon-name": name},
	}, map[string]any{
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{"kind": "Deployment"}}}},
		"status": map[string]any{"conditions": []any{
			condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete"),
			condition("Available", "True", "ResourcesAvailable", "All resources are available"),
		}},
	})
	return errors.Join(err, work)
}
