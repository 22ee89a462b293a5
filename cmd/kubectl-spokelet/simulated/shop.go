package simulated

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/version"
)

const (
	deployments = "/apis/apps/v1/deployments"
	policies    = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	bindings    = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	kinds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	rules       = "/apis/addon.spokelet.io/v1alpha1/addonpolicies"
	windows     = "/apis/addon.spokelet.io/v1alpha1/maintenancewindows"
)

// Noon is the time of the fleets of a shop.
func Noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// ago is an instant some minutes before noon.
func ago(minutes int) string {
	return Noon().Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339)
}

// since is a condition that began some minutes before noon.
func since(minutes int, c map[string]any) map[string]any {
	c["lastTransitionTime"] = ago(minutes)
	return c
}

// lives is the condition of a certificate that lives for so many hours, and was made so many hours ago.
func lives(made, hours int) map[string]any {
	const layout = "2006-01-02 15:04:05 -0700 MST"
	from := Noon().Add(-time.Duration(made) * time.Hour)
	return since(made*60, condition(names.ConditionCertificateRotated, "True", "ClientCertificateUpdated", fmt.Sprintf(
		"client certificate rotated starting from %s to %s", from.Format(layout),
		from.Add(time.Duration(hours)*time.Hour).Format(layout))))
}

// shop is a fleet that is being made.
type shop struct {
	*Hub

	failed []error
}

func (s *shop) put(list string, o object, content map[string]any) {
	s.failed = append(s.failed, s.add(list, o, content))
}

// stores are the clusters of a shop by the alphabet: four that get changes first, and forty others.
func stores() []string {
	var all []string
	for i := 1; i <= 4; i++ {
		all = append(all, fmt.Sprintf("canary-%d", i))
	}
	for i := 1; i <= 40; i++ {
		all = append(all, fmt.Sprintf("store-%03d", i))
	}
	return all
}

// Healthy is a fleet in which all is well.
func Healthy() (*Hub, error) {
	s := newShop()
	for _, name := range stores() {
		s.cluster(name, available("True", "ManagedClusterAvailable", "Managed cluster is available", 5000), lives(200, 720))
	}
	for _, addOn := range []string{"logs", "metrics", "policy", "proxy"} {
		s.define(addOn, completed("44/44 completed"))
		for _, name := range stores() {
			s.addOn(installed{name, addOn, "2", "2"})
		}
	}
	return s.Hub, errors.Join(s.failed...)
}

// Shop is a fleet with something broken, and a rollout of add-on metrics that is further with each step: its canaries
// have the change, and six stores more have it after each of six steps.
func Shop(step int) (*Hub, error) {
	s := newShop()
	for i, name := range stores() {
		life := lives(200, 720)
		if i == 20 {
			life = lives(700, 720)
		}
		s.cluster(name, available("True", "ManagedClusterAvailable", "Managed cluster is available", 5000), life)
	}
	s.cluster("store-114", available("Unknown", "ManagedClusterLeaseUpdateStopped",
		"Registration agent stopped updating its lease.", 252), lives(500, 720))
	s.put(clusters, object{name: "store-201"}, map[string]any{"spec": map[string]any{}, "status": map[string]any{}})
	labels := map[string]string{names.LabelClusterName: "store-201"}
	s.put(requests, object{name: "store-201-abcde", labels: labels}, map[string]any{
		"spec": map[string]any{"signerName": "kubernetes.io/kube-apiserver-client", "username": "bootstrap"},
	})
	s.logs()
	s.metrics(step)
	s.rule()
	s.define("policy", completed("44/44 completed"))
	for _, name := range stores() {
		s.addOn(installed{name, "policy", "2", "2"})
	}
	s.proxy()
	return s.Hub, errors.Join(s.failed...)
}

// newShop is a fleet with a hub that is well, and nothing else.
func newShop() *shop {
	s := &shop{Hub: &Hub{lists: map[string][]object{}}}
	for _, list := range []string{
		clusters, addOns, definitions, decisions, works, requests, leases, events, placements, deployments, policies,
		bindings, kinds, rules, windows,
	} {
		s.lists[list] = nil
	}
	s.put(deployments, object{namespace: names.NamespaceHub, name: "spokelet-hub"}, map[string]any{
		"spec": map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"image": "registry.local/spokelet-hub:" + version.String()}},
		}}},
		"status": map[string]any{"readyReplicas": 2},
	})
	s.put(leases, object{namespace: names.NamespaceHub, name: "spokelet-hub"}, map[string]any{"spec": map[string]any{
		"holderIdentity": "spokelet-hub-7d9f_1", "leaseDurationSeconds": 15,
		"renewTime": Noon().Add(-5 * time.Second).Format("2006-01-02T15:04:05.000000Z07:00"),
	}})
	wanted, err := facts.Policies()
	s.failed = append(s.failed, err)
	for _, name := range wanted {
		s.put(policies, object{name: name}, map[string]any{})
		s.put(bindings, object{name: name}, map[string]any{"spec": map[string]any{
			"policyName": name, "validationActions": []any{"Deny"},
		}})
	}
	s.put(placements, object{namespace: "add-ons", name: "stores"}, map[string]any{"status": map[string]any{
		"conditions": []any{
			since(9000, condition("PlacementSatisfied", "True", "AllDecisionsScheduled", "All decisions scheduled")),
		},
	}})
	for i, group := range [][]string{stores()[:4], stores()[4:]} {
		var selected []any
		for _, name := range group {
			selected = append(selected, map[string]any{"clusterName": name, "reason": ""})
		}
		s.put(decisions, object{namespace: "add-ons", name: fmt.Sprintf("stores-decision-%d", i+1), labels: map[string]string{
			names.LabelPlacement: "stores", names.LabelDecisionGroupIndex: fmt.Sprint(i),
			names.LabelDecisionGroupName: []string{"canary", ""}[i],
		}}, map[string]any{"status": map[string]any{"decisions": selected}})
	}
	return s
}

// available is the condition of a heartbeat.
func available(status, reason, text string, minutes int) map[string]any {
	return since(minutes, condition("ManagedClusterConditionAvailable", status, reason, text))
}

// completed is the condition of a rollout that is complete.
func completed(text string) map[string]any {
	return since(3000, condition("Progressing", "False", "Completed", text))
}

// cluster adds a cluster with its heartbeat.
func (s *shop) cluster(name string, conditions ...map[string]any) {
	all := append([]map[string]any{
		since(9000, condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted",
			"Accepted by hub cluster admin")),
		since(9000, condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined")),
	}, conditions...)
	s.put(clusters, object{name: name}, map[string]any{
		"spec": map[string]any{"hubAcceptsClient": true, "leaseDurationSeconds": 60},
		"status": map[string]any{
			"conditions": all, "version": map[string]any{"kubernetes": "v1.35.4"},
			"clusterClaims": []any{map[string]any{"name": names.ClaimAgentVersion, "value": "v1.0.0"}},
		},
	})
	if name != "store-114" {
		s.put(leases, object{namespace: name, name: "managed-cluster-lease"}, map[string]any{"spec": map[string]any{
			"renewTime": Noon().Add(-20 * time.Second).Format("2006-01-02T15:04:05.000000Z07:00"),
		}})
	}
}

// define adds the definition of an add-on with how far its rollout is.
func (s *shop) define(name string, progress map[string]any) {
	group := map[string]any{"mandatoryDecisionGroups": []any{map[string]any{"groupName": "canary"}}}
	for key, value := range map[string]any{"maxConcurrency": 6, "maxFailures": 2, "minSuccessTime": "10m"} {
		group[key] = value
	}
	placed := map[string]any{"name": "stores", "namespace": "add-ons", "rolloutStrategy": map[string]any{
		"type": "Progressive", "progressive": group,
	}}
	s.put(definitions, object{name: name}, map[string]any{
		"spec": map[string]any{"installStrategy": map[string]any{"type": "Placements", "placements": []any{placed}}},
		"status": map[string]any{"installProgressions": []any{map[string]any{
			"name": "stores", "namespace": "add-ons", "conditions": []any{progress},
		}}},
	})
}

// installed is an add-on on a cluster, with the content that it is to have and that it has.
type installed struct{ cluster, name, desired, applied string }

// addOn adds an add-on that is well but for further conditions.
func (s *shop) addOn(a installed, further ...map[string]any) {
	name := a.name
	hash := func(of string) map[string]any {
		return map[string]any{"name": name + "-v" + of, "specHash": "9f8e7d6c5b4a3928" + of}
	}
	conditions := []map[string]any{
		since(9000, condition("RegistrationApplied", "True", "SetPermissionApplied", "Registration is configured")),
		lives(100, 720),
		since(8000, condition("ManifestApplied", "True", "AddonManifestApplied", "manifests of addon are applied")),
		since(8000, condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured")),
		since(3000, condition("Progressing", "False", "Completed", "completed with no errors.")),
		since(8000, condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", name+" add-on is available.")),
	}
	for _, more := range further {
		conditions = slices.DeleteFunc(conditions, func(c map[string]any) bool { return c["type"] == more["type"] })
	}
	s.put(addOns, object{namespace: a.cluster, name: name}, map[string]any{"status": map[string]any{
		"conditions": append(conditions, further...), "namespace": name,
		"configReferences": []any{map[string]any{
			"group": "addon.open-cluster-management.io", "resource": "addontemplates", "desiredConfig": hash(a.desired),
			"lastAppliedConfig": hash(a.applied),
		}},
	}})
	s.put(works, object{
		namespace: a.cluster, name: "addon-" + name + "-deploy-0", labels: map[string]string{names.LabelAddonName: name},
	}, map[string]any{
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{}, map[string]any{}}}},
		"status": map[string]any{"conditions": []any{
			since(8000, condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete")),
			since(8000, condition("Available", "True", "ResourcesAvailable", "All resources are available")),
		}},
	})
}

// logs adds an add-on whose rollout stopped, because five clusters cannot pull the image.
func (s *shop) logs() {
	s.define("logs", since(90, condition("Progressing", "True", "Progressing",
		"14/44 progressing, 9 succeeded, 5 failed 0 timeout. "+
			"the rollout stopped: 5 of 44 clusters of the placement failed or timed out (store-001, ...), and maxFailures 2 "+
			"tolerates 2; it goes on when they are well, or with another configuration.")))
	const text = "Deployment logs/agent is not ready. Pod logs/agent-6c9f-x2: image registry.local/logs:1.10 of " +
		"container agent cannot be pulled (ImagePullBackOff): manifest unknown"
	for i, name := range stores() {
		switch {
		case i < 9 && i >= 4:
			s.addOn(installed{name, "logs", "10", "10"},
				since(45, condition("Progressing", "True", "Progressing", "progressing... work is not ready")),
				since(38, condition(names.ConditionRolloutFailed, "True", "Failed", "The rollout counts the cluster as failed")),
				since(38, condition(names.ConditionWorkloadsReady, "False", "WorkloadNotReady", text)),
				since(38, condition("Available", "False", "ProbeUnavailable", "Deployment logs/agent is not ready")))
		case i < 14:
			s.addOn(installed{name, "logs", "10", "10"},
				since(80-3*i, condition("Progressing", "False", "Completed", "completed with no errors.")))
		default:
			s.addOn(installed{name, "logs", "10", "9"}, waiting())
		}
	}
	s.addOn(installed{"store-114", "logs", "9", "9"}, since(252, condition("Available", "Unknown",
		"ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.")))
}

// waiting is the condition of an add-on that waits for its turn.
func waiting() map[string]any {
	return since(120, condition("Configured", "False", "ConfigurationsNotConfigured",
		"Configurations updated and not configured yet: "+
			"waits for its turn in the rollout: maxConcurrency is 6, maxFailures is 2; status.installProgressions of the "+
			"ClusterManagementAddOn reports the progress"))
}

// metrics adds an add-on whose rollout goes on.
func (s *shop) metrics(step int) {
	const atOnce, canaries, every = 6, 4, 15
	done := min(canaries+atOnce*(step+1), len(stores()))
	progress := since(120, condition("Progressing", "True", "Progressing", fmt.Sprintf(
		"%d/%d progressing, %d succeeded, 0 failed 0 timeout.",
		min(atOnce, len(stores())-done), len(stores()), done)))
	if done == len(stores()) {
		progress = since(1, condition("Progressing", "False", "Completed",
			"44/44 completed with no errors, 0 failed 0 timeout."))
	}
	s.define("metrics", progress)
	for i, name := range stores() {
		switch wave := (i - canaries + atOnce) / atOnce; {
		case i < done:
			s.addOn(installed{name, "metrics", "7", "7"}, since(max(115-every*max(wave, 0)-i%atOnce, 1),
				condition("Progressing", "False", "Completed", "completed with no errors.")))
		case i < done+atOnce:
			s.addOn(installed{name, "metrics", "7", "7"},
				since(4, condition("Progressing", "True", "Progressing", "progressing... work is not ready")))
		default:
			s.addOn(installed{name, "metrics", "7", "6"}, waiting())
		}
	}
}
