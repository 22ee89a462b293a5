package fleets

import (
	"slices"
	"strconv"
	"time"
)

// settle keeps the books of the judge: since when a cluster has the version and is well, and whether it is done.
func (u *upgrade) settle(at *site) {
	if at.has != strconv.Itoa(u.version) || at.done {
		return
	}
	if !at.applied || u.now.Before(at.pods) {
		// What happens after the soak is not a matter of the rollout, and the soak ended before this step or did not.
		if at.done = !at.reached.IsZero() && !u.now.Before(at.reached.Add(u.soak)); !at.done {
			at.broke = at.broke || !at.reached.IsZero()
			at.reached = time.Time{}
		}
		return
	}
	if at.reached.IsZero() {
		at.reached, at.broke = u.now, false
	}
	end := at.reached.Add(u.soak)
	at.done = !u.now.Before(end) && (!at.down || at.fell.After(end))
}

// slack is how much later than the judge the hub manager may know that a cluster failed.
const slack = 20 * time.Second

// complete reports whether the works are applied, and their pods ready.
func (at *site) complete(now time.Time) bool { return at.applied && !now.Before(at.pods) }

// failed reports whether the hub manager must know that a cluster failed: its agent is not well while it soaks, or it
// was on its way for longer than the deadline.
func (u *upgrade) failed(at *site) bool {
	if at.lost {
		return true
	}
	if at.has != strconv.Itoa(u.version) || at.done {
		return false
	}
	if at.complete(u.now) {
		return at.down && !at.reached.IsZero() && u.now.Sub(at.reached) > slack && u.now.Sub(at.fell) > slack
	}
	return u.deadline > 0 && u.now.Sub(at.began) > u.deadline+slack
}

// mayCount reports whether the hub manager may know by now that a cluster failed.
func (u *upgrade) mayCount(at *site) bool {
	return (at.has == strconv.Itoa(u.version) || at.late == u.version) &&
		(at.down || at.broke || !at.known && u.deadline > 0 && u.now.Sub(at.got) >= u.deadline)
}

// frees reports whether a cluster that is not done may have lost its place: it failed, also where it broke while it
// soaked, and if there is a deadline, that is over.
func (u *upgrade) frees(at *site) bool {
	if u.deadline > 0 {
		return u.now.Sub(at.got) >= u.deadline
	}
	return at.broke || at.complete(u.now) && at.down
}

// judge checks the clusters that just got the version.
func (u *upgrade) judge(given []*site) {
	moving, freed, waiting, broken := 0, 0, "", ""
	var failed []string
	for _, at := range u.sites {
		if u.planned && u.failed(at) && (at.lost || !slices.Contains(given, at)) {
			failed = append(failed, at.name)
			if at.canary {
				failed = append(failed, make([]string, u.tolerated)...) // None is tolerated.
			}
		}
		if u.planned && !at.canary && at.broken && at.has != strconv.Itoa(u.version) {
			broken = at.name
		}
		switch {
		case at.canary && !at.done:
			waiting = at.name
		case !at.canary && at.has == strconv.Itoa(u.version) && !at.done:
			moving++
			if u.frees(at) || at.returns {
				freed++
			}
		}
	}
	places := u.limit + min(freed, u.tolerated)
	for _, at := range given {
		switch {
		case u.torn > 0:
			u.Violate("%s gets version %d while the decisions are torn", at.name, u.version)
		case at.returns: // It had it, and failed.
		case !at.canary && waiting != "":
			u.Violate("%s gets version %d before %s of the mandatory group is done", at.name, u.version, waiting)
		case u.planned && !at.canary && broken != "" && at.fine:
			u.Violate("%s, which is well, gets version %d before %s, which is broken", at.name, u.version, broken)
		case !at.canary && moving > places:
			u.Violate("%s gets version %d as one of %d that are not done; %d may", at.name, u.version, moving, places)
		case len(failed) > u.tolerated:
			u.Violate("%s gets version %d although %q failed, and %d may", at.name, u.version, failed, u.tolerated)
		}
	}
	for _, at := range given {
		at.lost = false
	}
}
