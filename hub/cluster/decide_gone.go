package cluster

import (
	"slices"

	"github.com/spokelet/spokelet/internal/names"
)

// left reports whether any access of the cluster exists. Only access proves that a cluster without ManagedCluster was
// accepted once; a namespace alone may have been prepared for a future cluster.
func (g grants) left(cluster string) bool {
	return ours(g.role, cluster) || ours(g.binding, cluster) || ours(g.registration, cluster) || ours(g.work, cluster)
}

// vanished reports whether a ManagedCluster is gone without clean-up, because somebody removed its finalizers.
func vanished(f facts) bool {
	return f.cluster == nil && f.have.left(f.name) && names.CheckCluster(f.name) == nil
}

// decideGone cleans up after a cluster that vanished as after one that is deleted. Its access is deleted at once,
// except the RoleBinding for ManifestWorks: it stays until no work is left, because later passes recognise the cluster
// by it.
func decideGone(f facts, p *plan) {
	if !vanished(f) {
		p.stages = [][]step{removeGrants(f, true, worksGone(f))}
		return
	}
	switch {
	case !asked(f):
		p.blocked = notAsked(f)
		return
	case f.live.cluster:
		// The ManagedCluster was created again a moment ago, and these objects may already belong to it.
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
