package cluster

// act starts, stops or retimes the heartbeat. It cannot fail: the heartbeat reports by itself.
func (r *Reconciler) act(p plan) {
	r.Heartbeat.Want(p.heartbeat)
	if p.awaitBeat {
		r.Heartbeat.Await()
	}
}
