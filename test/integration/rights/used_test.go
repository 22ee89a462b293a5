package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

// asked are rights that no request uses by itself: while it serves another request, the API server or the hub manager
// asks whether its sender has them. Each names the request that shows it.
var asked = map[string]map[string]func(r request) bool{
	"the API server asks for the right to approve, and to sign, for the signer of the request": {
		managerRole + ": approve certificates.k8s.io/signers": byManager("update", "certificatesigningrequests/approval"),
		managerRole + ": sign certificates.k8s.io/signers":    byManager("update", "certificatesigningrequests/status"),
	},
	"OwnerReferencesPermissionEnforcement asks whether an owner may be kept from being deleted": {
		managerRole + ": update addon.open-cluster-management.io/clustermanagementaddons/finalizers": byManager("create",
			"managedclusteraddons"),
		managerRole + ": update addon.open-cluster-management.io/managedclusteraddons/finalizers": byManager("create",
			"manifestworks"),
		managerRole + ": update cluster.open-cluster-management.io/placements/finalizers": byManager("create",
			"placementdecisions"),
	},
	"the hub manager asks whether an agent may renew before it approves": {
		ownRole + ": renew register.open-cluster-management.io/managedclusters/clientcertificates": byManager("create",
			"subjectaccessreviews"),
	},
	"a policy asks whoever accepts a cluster, or puts it into a set, whether it may": {
		managerRole + ": update register.open-cluster-management.io/managedclusters/accept": byManager("patch",
			"managedclusters"),
		managerRole + ": create cluster.open-cluster-management.io/managedclustersets/join default": byManager("patch",
			"managedclusters"),
	},
}

// others are rights that nothing of ours uses.
var others = map[string][]string{
	"tools that prepare a cluster to join read this": {
		bootstrapRole + ": get configmaps cluster-info", bootstrapRole + ": get configmaps kube-root-ca.crt",
	},
	"a policy asks whoever creates a cluster in the default set, as OCM's webhook has them do, whether it may": {
		bootstrapRole + ": create cluster.open-cluster-management.io/managedclustersets/join default",
	},
	"where the webhooks of OCM run beside us, they ask for this of whoever writes": {
		executorRole + ": execute-as work.open-cluster-management.io/manifestworks system:serviceaccount::klusterlet-work-sa",
	},
	"agents of OCM, which may join our hub, do this": {
		ownRole + ": update cluster.open-cluster-management.io/managedclusters cluster1",
		ownRole + ": update cluster.open-cluster-management.io/managedclusters/status cluster1",
		registrationRole + ": list coordination.k8s.io/leases", registrationRole + ": watch coordination.k8s.io/leases",
		registrationRole + ": update addon.open-cluster-management.io/managedclusteraddons/status",
		workRole + ": create events", workRole + ": patch events", workRole + ": update events",
		workRole + ": update events.k8s.io/events",
		workRole + ": update work.open-cluster-management.io/manifestworks",
		workRole + ": patch work.open-cluster-management.io/manifestworks/status",
	},
}

// sometimes are rights that are used in some runs of the scenario and not in others.
var sometimes = map[string][]string{
	"the hub manager asks whether an add-on is there before it makes again what that had (hub/deploy/act.go)": {
		managerRole + ": get addon.open-cluster-management.io/managedclusteraddons",
	},
	"a namespace that the cache does not show yet is read without it (internal/reconcile)": {
		managerRole + ": get namespaces",
	},
	"a ManagedCluster that nobody accepted is removed after a day (hub/cluster/decide_unaccepted.go)": {
		managerRole + ": delete cluster.open-cluster-management.io/managedclusters",
	},
	"an agent reads its request without its cache where that does not show it yet, or time is short (csr/issue/issuer.go)": {
		ownRole + ": get certificates.k8s.io/certificatesigningrequests",
	},
	"an Event about a work that happens again is counted up, a minute later at the earliest (agent/work/events.go)": {
		workRole + ": patch events.k8s.io/events",
	},
	"a stored content is deleted when nothing refers to it, ten seconds after it was stored at the earliest (hub/rollout/reconciler.go)": {
		"Role spokelet-hub:configurations: delete apps/controllerrevisions",
	},
	"a denied agent lists where the API server does not stream lists, and where a stream was refused": {
		ownRole + " (denied): list cluster.open-cluster-management.io/managedclusters cluster1",
	},
}

// broad are roles for what works contain, which is not ours to know. manifests/work_test.go holds them to the verbs
// that an object takes.
var broad = map[string]string{
	aggregateRole: "works may contain any object of these kinds, and of those that administrators add",
}

// empty are roles that we bind without knowing what is in them.
var empty = map[string]string{
	"ClusterRole admin": "works may contain any object of an application, in any namespace",
	"ClusterRole open-cluster-management:spokelet-hub:hub-permissions": "what administrators label as a consent",
}

// twice are roles that overlap on purpose: the first has rights that the second gives its holder anyway.
var twice = map[[2]string]string{
	{agentRole, addOnsRole}:      "whoever leaves the second out, because the cluster has no add-ons, needs the first",
	{spokeRole, addOnsRole}:      "whoever leaves the second out, because the cluster has no add-ons, needs the first",
	{addOnsRole, spokeRole}:      "each stands for itself",
	{spokeRole, aggregateRole}:   "what the second aggregates is a default that may be replaced",
	{addOnsRole, aggregateRole}:  "what the second aggregates is a default that may be replaced",
	{registrationRole, workRole}: "each is bound by itself, and only the second has what is for works",
	{workRole, registrationRole}: "the first outlives the second while a cluster that leaves still has works",
}

// expected are refusals that belong to the protocol.
var expected = map[string]func(r request, rec *record) bool{
	"an agent looks whether its cluster is accepted before the hub manager has given it its rights": func(
		r request, _ *record,
	) bool {
		return r.verb == "get" && r.resource == "managedclusters" && r.name == own && isAgent(r.user)
	},
	"a cluster that is denied may do nothing but read itself": func(r request, rec *record) bool {
		return isAgent(r.user) && r.at.After(rec.deniedFrom) && r.at.Before(rec.deniedUntil)
	},
}

// isAgent reports whether a user of the hub is the agent of the cluster.
func isAgent(user string) bool {
	return strings.HasPrefix(user, "system:open-cluster-management:"+own+":")
}

// by is about requests of a user that were served.
func by(user, verb, resource string) func(request) bool {
	return func(r request) bool { return r.user == user && r.verb == verb && r.resource == resource && r.served }
}

func byManager(verb, resource string) func(request) bool {
	return by(account(names.NamespaceHub, names.ServiceAccountManager), verb, resource)
}

// belongs reports whether a refusal belongs to the protocol.
func (rec *record) belongs(r request) bool {
	for _, is := range expected {
		if is(r, rec) {
			return true
		}
	}
	return false
}

// refused returns the requests of ours that the authorizer refused without need, each once.
func (rec *record) refused() []string {
	var all []string
	for _, r := range rec.requests {
		if r.denied && isOurs(r.user) && !rec.belongs(r) {
			all = append(all, r.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forbidden returns the requests of ours that anybody refused without need, each once and with the reason: also what
// admission refuses tells of a right that is missing.
func (rec *record) forbidden() []string {
	var all []string
	for _, r := range rec.requests {
		if r.forbidden && isOurs(r.user) && !rec.belongs(r) {
			all = append(all, r.String()+": "+r.answer)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Shows: registration/every-right-is-used
func TestNothingOfOursIsRefused(t *testing.T) {
	assert.Empty(t, recorded.refused(), "requests that RBAC refused: a rule is missing, or nobody should ask")
}

// Shows: registration/every-right-is-used
func TestEveryRightIsUsed(t *testing.T) {
	held := heldAtoms(t)
	exempt, either := exemptions(t), keysOf(sometimes)
	require.NotEmpty(t, recorded.grants)
	for _, g := range recorded.grants {
		if len(g.rules) == 0 {
			assert.Contains(t, empty, g.role, "this role has no rules that we ship")
		}
		for _, a := range g.atoms() {
			key := a.String()
			used := slices.ContainsFunc(recorded.requests, func(r request) bool { return g.allows(a, r) })
			_, isBroad := broad[g.role]
			switch {
			case held[key], isBroad, either[key]:
			case used && exempt[key]:
				t.Errorf("%s: this is used, and does not belong in a table", key)
			case !used && !exempt[key]:
				t.Errorf("%s: nothing used this; if nobody needs it, take it from the role", key)
			}
			delete(exempt, key)
		}
	}
	assert.Empty(t, exempt, "no role has what stands in a table")
}

// exemptions are all keys of the tables. What the API server is asked for is shown by a request.
func exemptions(t *testing.T) map[string]bool {
	t.Helper()
	exempt := keysOf(others)
	for sentence, rights := range asked {
		for key, seen := range rights {
			exempt[key] = true
			assert.True(t, slices.ContainsFunc(recorded.requests, seen), "%s: no request asked for %s", sentence, key)
		}
	}
	return exempt
}

// keysOf returns all keys of a table.
func keysOf(table map[string][]string) map[string]bool {
	all := map[string]bool{}
	for _, keys := range table {
		for _, key := range keys {
			all[key] = true
		}
	}
	return all
}

// TestNoRightIsGivenTwice finds rules without which nothing would change, because another role of the same holder has
// them.
func TestNoRightIsGivenTwice(t *testing.T) {
	seen := map[[2]string]bool{}
	for i, g := range recorded.grants {
		if broad[g.role] != "" {
			continue
		}
		for _, a := range g.atoms() {
			for j, other := range recorded.grants {
				if i == j || !other.covers(a, g) {
					continue
				}
				pair := [2]string{g.role, other.role}
				seen[pair] = true
				assert.NotEmpty(t, twice[pair], "%s: %s gives the same holder this, too", a, other.role)
			}
		}
	}
	for pair := range twice {
		assert.True(t, seen[pair], "%v do not overlap, and do not belong in the table", pair)
	}
}

// covers reports whether a grant gives all holders of another one a right of theirs.
func (g grant) covers(a atom, of grant) bool {
	if g.plane != of.plane || (g.namespace != "" && g.namespace != of.namespace) || g.from != of.from {
		return false
	}
	for _, subject := range of.subjects {
		if !slices.Contains(g.subjects, subject) {
			return false
		}
	}
	return slices.ContainsFunc(g.atoms(), func(b atom) bool {
		return b.verb == a.verb && b.group == a.group && b.resource == a.resource && (b.name == "" || b.name == a.name)
	})
}
