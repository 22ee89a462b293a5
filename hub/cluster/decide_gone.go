package cluster

import (
	"slices"

	"github.com/spokelet/spokelet/internal/names"
)

// left reports whether any access of the cluster is there. It is the one proof that a cluster without ManagedCluster
// was accepted once; a namespace without it may hold what somebody prepares for a cluster that is yet to come.
func (g grants) left(cluster string) bool {
	return ours(g.role, cluster) || ours(g.binding, cluster) || ours(g.registration, cluster) || ours(g.work, cluster)
}

// vanished reports whether a cluster went without a farewell: somebody took its finalizers off.
func vanished(f facts) bool {
	return f.cluster == nil && f.have.left(f.name) && names.CheckCluster(f.name) == nil
}

// decideGone plans the same cleaning for a cluster that vanished as for one that is deleted. Its access goes at once,
// but for that to ManifestWorks, which stays until none is left and is what a later pass knows the cluster by.
func decideGone(f facts, p *plan) {
	if !vanished(f) {
		p.stages = [][]step{removeGrants(f, true, worksGone(f))}
		return
	}
	switch {
	case f.live == nil || f.live.err != nil:
		p.blocked = notAsked(f)
		return
	case f.live.cluster:
		// It was created again a moment ago, and what is here may be its already.
		p.remaining = "the event that shows the ManagedCluster, which was created again"
		return
	}
	var access []step
	work := f.have.work
	if ours(work, f.name) && slices.Contains(work.Finalizers, names.FinalizerManifestWork) {
		access = removeGrants(f, true, false)
	}
	var rest []step
	if rest, p.remaining = removeNext(f); p.remaining != "" {
		p.stages = [][]step{append(access, rest...)}
		return
	}
	p.stages = [][]step{removeOwn(f), removeGrants(f, true, true)}
}
