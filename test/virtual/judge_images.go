package virtual

import (
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// moves judges the image of a Deployment: only so many may be on the way to one.
func (j *judge) moves(o one, image string, available bool) {
	before := j.image[o]
	j.world.options.Log.Info("judge: a Deployment", "cluster", o.cluster, "addOn", o.addOn, "image", image,
		"available", available, "before", before)
	switch {
	case available:
		if before != image {
			j.image[o], j.reached[o] = image, time.Now()
		}
		delete(j.next, o)
		delete(j.fell, o)
		return
	case before == image:
		// In its first seconds it is in flight again, and nothing has failed yet.
		well := time.Since(j.reached[o])
		if _, down := j.fell[o]; !down && image != handImage && well > 2*settled && well < soak {
			j.fell[o] = time.Now()
		}
		delete(j.next, o)
		return
	case image == handImage || j.next[o] == image:
		return
	}
	_, broken := j.next[o]
	if _, down := j.fell[o]; down {
		delete(j.fell, o)
		broken = true
	}
	j.next[o], j.since[o] = image, time.Now()
	j.counts["images changed"]++
	j.inOrder(o, image)
	moving := 0
	for other, to := range j.next {
		if _, wanted := j.wanted[other]; !wanted || other.addOn != o.addOn {
			continue
		}
		// One that a bad image broke waits for its turn to get the next one, before all that are well.
		if to == image {
			// One that is away is not selected, and one that moves since before may be in another group, as a canary is.
			if kindOf(o.addOn) != grouped || (j.calm(other.cluster, recovered) &&
				j.since[other].After(j.regrouped[o.addOn]) && j.world.isCanary(other.cluster) == j.world.isCanary(o.cluster)) {
				moving++
			}
		} else if kindOf(o.addOn) != grouped && !broken && before != "" && j.calm(o.cluster, recovered) &&
			j.calm(other.cluster, recovered) && time.Since(j.since[other]) > noticed {
			// Those that move at the same instant are seen one after the other.
			time.AfterFunc(settled, func() { j.wasLeft(other, to, o) })
		}
	}
	if may := most(o.addOn, len(j.world.clusters)); moving > may {
		j.tell("slots: %d clusters have the add-on %s in motion, with %s the last; %d may",
			moving, o.addOn, o.cluster, may)
	}
}

// inOrder judges that an add-on moves to an image: nobody does while that fails somewhere, or before the canaries had
// it.
func (j *judge) inOrder(o one, image string) {
	if !j.calm(o.cluster, recovered) {
		return
	}
	for other, since := range j.fell {
		if other.addOn == o.addOn && j.image[other] == image && j.image[o] != "" && j.isWanted(other) &&
			time.Since(since) > settled && j.calm(other.cluster, recovered) {
			j.tell("failures-stop: the add-on %s of %s moves to %s, which failed on %s at %s",
				o.addOn, o.cluster, image, other.cluster, since.Format(time.TimeOnly))
		}
	}
	if kindOf(o.addOn) != grouped || j.world.isCanary(o.cluster) {
		return
	}
	for _, c := range j.world.canaries() {
		first := one{c.Name, o.addOn}
		if j.isWanted(first) && j.calm(c.Name, recovered) && j.image[first] != image {
			j.tell("groups-in-order: the add-on %s of %s moves to %s, and the canary %s has %q",
				o.addOn, o.cluster, image, c.Name, j.image[first])
		}
	}
}

// wasLeft judges an add-on that an image broke when another one, which was well, moved to the next image before it.
func (j *judge) wasLeft(broken one, by string, well one) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, wanted := j.wanted[broken]; wanted && j.next[broken] == by {
		j.tell("broken-first: the add-on %s of %s, which was well, moved to %s, and %s stays broken by %s since %s",
			well.addOn, well.cluster, j.image[well], broken.cluster, by, j.since[broken].Format(time.TimeOnly))
	}
}

// numbered finds an image in a manifest: people number theirs, and never take an earlier one again.
var numbered = regexp.MustCompile(`"image":"[a-z-]+([0-9]+)"`)

// work judges the image that the work of an add-on has: whatever the hub manager sees, it is none of before.
func (j *judge) work(kind watch.EventType, w *workv1.ManifestWork) {
	o := one{w.Namespace, w.Labels[addonv1alpha1.AddonLabelKey]}
	if o.addOn == "" {
		return // People write it, and may put anything back.
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind == watch.Deleted {
		delete(j.wrote, o)
		return
	}
	for i := range w.Spec.Workload.Manifests {
		found := numbered.FindSubmatch(w.Spec.Workload.Manifests[i].Raw)
		if found == nil {
			continue
		}
		number, err := strconv.Atoi(string(found[1]))
		if was := j.wrote[o]; err != nil || number < was {
			j.tell("never-back: the work %s of %s gets image %s after number %d (%v)", w.Name, w.Namespace, found[1], was, err)
		}
		j.wrote[o] = number
	}
}
