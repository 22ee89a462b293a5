package work

// phase is what a pass is about.
type phase int

const (
	// phaseGone: there is no work; the evictor cares for what it left.
	phaseGone phase = iota
	// phaseAbandon: the work vanished while its objects were created; they are deleted at once.
	phaseAbandon
	// phaseStale: a cache must catch up first.
	phaseStale
	// phaseDelete: the work is being deleted.
	phaseDelete
	// phaseRestart: the work lives, but its AppliedManifestWork is being deleted; its objects go before they come again.
	phaseRestart
	// phaseApply: the objects are brought to the desired state.
	phaseApply
	// phaseUnknown: the hub is away and there is no copy of the work that can be used.
	phaseUnknown
	// phaseOffline: the hub is away; the objects are kept as the copy of the work says.
	phaseOffline
)

// String names the phase in metrics.
func (p phase) String() string {
	switch p {
	case phaseGone:
		return "gone"
	case phaseAbandon:
		return "abandon"
	case phaseStale:
		return "stale"
	case phaseDelete:
		return "release"
	case phaseRestart:
		return "drain"
	case phaseApply:
		return "apply"
	case phaseOffline:
		return "offline"
	case phaseUnknown:
	}
	return "unknown"
}

// phase decides what the pass is about.
func (f *facts) phase() phase {
	switch {
	case f.offline && f.work == nil:
		return phaseUnknown
	case f.offline && !f.stale:
		return phaseOffline
	case f.work == nil && f.applied != nil:
		return phaseAbandon
	case f.work == nil:
		return phaseGone
	case f.stale:
		return phaseStale
	case !f.work.DeletionTimestamp.IsZero():
		return phaseDelete
	case f.applied != nil && !f.applied.DeletionTimestamp.IsZero():
		return phaseRestart
	}
	return phaseApply
}
