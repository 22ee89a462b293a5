package lies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/cert"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// underWay is how long a request may be under way that was decided on before people changed their mind.
	underWay = 1500 * time.Millisecond
	// afterwards is part of the names of requests that were made after their cluster was denied or deleted.
	afterwards = "-afterwards"
	// earliest is the share of the life of a certificate before which nobody asks for the next one.
	earliest = 0.6
	// mostTold is how many violations of a play are kept.
	mostTold = 20
)

// What an id names.
const (
	kindAddOn      = "ManagedClusterAddOn"
	kindWork       = "ManifestWork"
	kindDeployment = "Deployment"
	kindConfigMap  = "ConfigMap"
)

// id names an object of a cluster, or one in its namespace on the hub.
type id struct{ cluster, kind, name string }

func (i id) String() string { return fmt.Sprintf("the %s %s of %s", i.kind, i.name, i.cluster) }

// pair is an add-on on a cluster.
type pair struct{ cluster, addOn string }

// life is how long a certificate is valid.
type life struct{ from, until time.Time }

// judge watches the API servers themselves, and knows what people asked for. It is told about each change of that
// before it is made.
type judge struct {
	// who tells which programs wrote to what a violation is about.
	who func(cluster, name string) []string
	// deployment reads the Deployment of an add-on.
	deployment func(context.Context, pair) *appsv1.Deployment

	mu         sync.Mutex
	violations []string
	// protected are the objects that nothing asks to delete, and why; content is what is in those of others.
	protected map[id]string
	content   map[id]string
	told      map[types.UID]bool
	// atOnce is how many clusters move at a time by add-on; image is what the work of an add-on has, settled what ran.
	atOnce         map[string]int
	image, settled map[pair]string
	// hooked are the add-ons with a hook; hookRan are those whose hook has completed.
	hooked  map[string]bool
	hookRan map[pair]bool
	// unwelcome are the clusters that were denied or deleted, and since when.
	unwelcome map[string]time.Time
	// left is the image to which the add-ons of a cluster moved when it was denied: placements drop it then, with its
	// place in their rollouts.
	left map[pair]string
	// issued are the certificates of clusters and add-ons, excused those who may ask for one at any time.
	issued  map[pair]life
	excused map[pair]bool
	// misled are the clusters whose agents are told a wrong time by the hub, which they have to believe.
	misled map[string]bool
	// seen and approved are the requests that were judged when they came and when they were approved.
	seen, approved map[types.UID]bool
	// spare are the requests of agents that had a reason to ask for one at any time, and which they may give up.
	spare map[types.UID]bool
}

func newJudge() *judge {
	j := &judge{}
	j.forget()
	return j
}

// forget forgets all that a play was about.
func (j *judge) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violations = nil
	j.protected, j.content, j.told = map[id]string{}, map[id]string{}, map[types.UID]bool{}
	j.atOnce, j.image, j.settled = map[string]int{}, map[pair]string{}, map[pair]string{}
	j.hooked, j.hookRan, j.unwelcome = map[string]bool{}, map[pair]bool{}, map[string]time.Time{}
	j.left = map[pair]string{}
	if j.issued == nil {
		j.issued, j.seen, j.approved = map[pair]life{}, map[types.UID]bool{}, map[types.UID]bool{}
		j.spare = map[types.UID]bool{}
	}
	maps.DeleteFunc(j.issued, func(p pair, _ life) bool { return p.addOn != "" })
	// Those of the clusters themselves go on, unless an agent asked for one that it did not need in the end: how long the
	// agent keeps the one that it has is known again when the next one is issued, and not when this one is seen again.
	for p, last := range j.issued {
		if j.excused[p] || j.misled[p.cluster] {
			j.issued[p] = life{until: last.until}
		}
	}
	j.excused, j.misled = map[pair]bool{}, map[string]bool{}
}

// tell notes a violation. The caller holds the lock.
func (j *judge) tell(about id, format string, args ...any) {
	if len(j.violations) < mostTold {
		text := time.Now().UTC().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
		if about.name != "" {
			text = strings.Join(append([]string{text}, j.who(about.cluster, about.name)...), "\n      ")
		}
		j.violations = append(j.violations, text)
	}
}

// ended notes a program that ended by itself though nobody lied.
func (j *judge) ended(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell(id{}, "ended: %v", err)
}

// found returns the violations.
func (j *judge) found() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// protect notes that nothing asks to delete objects.
func (j *judge) protect(why string, all ...id) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range all {
		j.protected[i] = why
	}
}

// keep notes that nothing asks to change the value of a ConfigMap either.
func (j *judge) keep(i id, value string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.content[i] = value
}

// release notes that people are about to do something by which objects may go.
func (j *judge) release(all ...id) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range all {
		delete(j.protected, i)
		delete(j.content, i)
	}
}

// rolls notes how many clusters move at a time.
func (j *judge) rolls(addOn string, atOnce int, hooked bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.atOnce[addOn], j.hooked[addOn] = atOnce, hooked
}

// free notes that people take an add-on from a cluster, so that it comes back in its own way.
func (j *judge) free(p pair) {
	j.release(id{p.cluster, kindAddOn, p.addOn}, id{p.cluster, kindDeployment, p.addOn}, workOf(p))
	j.excuse(p)
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.settled, p)
}

// workOf is the work of an add-on.
func workOf(p pair) id { return id{p.cluster, kindWork, "addon-" + p.addOn + "-deploy-0"} }

// excuse notes that an agent has a reason to ask for a certificate; the cluster itself is an add-on without a name.
func (j *judge) excuse(p pair) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.excused[p] = true
}

// mislead notes that the hub tells the agent of a cluster a wrong time.
func (j *judge) mislead(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.misled[cluster] = true
}

// leaves notes that a cluster is about to be denied.
func (j *judge) leaves(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for p, image := range j.image {
		if p.cluster == cluster {
			j.left[p] = image
		}
	}
}

// deny notes that a cluster is not welcome any more, once that is written.
func (j *judge) deny(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unwelcome[cluster] = time.Now()
}

// welcome notes that a cluster is about to be accepted again.
func (j *judge) welcome(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.unwelcome, cluster)
}

// object judges what happens to an object.
func (j *judge) object(kind watch.EventType, i id, o client.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind != watch.Deleted && o.GetDeletionTimestamp() == nil || j.told[o.GetUID()] {
		return
	}
	if why, protected := j.protected[i]; protected {
		j.told[o.GetUID()] = true
		j.tell(i, "deleted: %s is deleted, though %s", i, why)
	}
}

func (j *judge) addOn(kind watch.EventType, o *addonv1alpha1.ManagedClusterAddOn) {
	j.object(kind, id{o.Namespace, kindAddOn, o.Name}, o)
}

// work judges what happens to a work: in that of an add-on, only so many may change to a new image at a time.
func (j *judge) work(ctx context.Context, kind watch.EventType, o *workv1.ManifestWork) {
	i := id{o.Namespace, kindWork, o.Name}
	j.object(kind, i, o)
	p, image := pair{o.Namespace, addOnOf(o)}, imageIn(o)
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.image[p]
	if j.image[p] = image; kind == watch.Deleted || image == "" {
		delete(j.image, p)
		return
	}
	most := j.atOnce[p.addOn]
	if before == image || most == 0 {
		return
	}
	var moving []string
	for other, to := range j.image {
		if other.addOn != p.addOn || to != image || j.settled[other] == image || j.settled[other] == "" {
			continue
		}
		if other != p {
			if j.left[other] == image {
				continue
			}
			// The watch of another API server may be late, and what it says now may be newer than what was decided on.
			j.mu.Unlock()
			d := j.deployment(ctx, other)
			j.mu.Lock()
			if d != nil && imageOf(d) == image && isAvailable(d) {
				continue
			}
		}
		moving = append(moving, other.cluster)
	}
	if len(moving) > most {
		slices.Sort(moving)
		j.tell(i, "slots: %d clusters move to image %s of add-on %s at a time (%s), and %d may", len(moving), image, p.addOn,
			strings.Join(moving, ", "), most)
	}
}

// workload judges what happens to a Deployment.
func (j *judge) workload(kind watch.EventType, cluster string, o *appsv1.Deployment) {
	j.object(kind, id{cluster, kindDeployment, o.Name}, o)
	j.mu.Lock()
	defer j.mu.Unlock()
	p := pair{cluster, o.Name}
	switch {
	case kind == watch.Deleted && j.hooked[p.addOn] && !j.hookRan[p]:
		j.tell(id{cluster, kindDeployment, o.Name}, "hook: the Deployment %s of %s is deleted, and its hook did not run",
			o.Name, cluster)
	case kind != watch.Deleted && isAvailable(o):
		j.settled[p] = imageOf(o)
	}
}

func (j *judge) hook(cluster string, o *batchv1.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if isDone(o) {
		j.hookRan[pair{cluster, o.Name}] = true
	}
}

// configMap judges what happens to a ConfigMap.
func (j *judge) configMap(kind watch.EventType, cluster string, o *corev1.ConfigMap) {
	i := id{cluster, kindConfigMap, o.Name}
	j.object(kind, i, o)
	j.mu.Lock()
	defer j.mu.Unlock()
	if value, kept := j.content[i]; kept && kind != watch.Deleted && o.Data["value"] != value {
		j.tell(i, "overwritten: %s has the value %q, and others keep %q", i, o.Data["value"], value)
	}
}

// request judges what happens to a certificate request.
func (j *judge) request(kind watch.EventType, o *certificatesv1.CertificateSigningRequest) {
	if kind == watch.Deleted {
		return
	}
	cluster, addOn, _ := csr.Subject(o)
	p := pair{cluster, addOn}
	j.mu.Lock()
	defer j.mu.Unlock()
	about := id{cluster, "CertificateSigningRequest", o.Name}
	if !j.seen[o.UID] {
		j.seen[o.UID] = true
		has := j.issued[p]
		asked := o.CreationTimestamp.Time
		early := has.from.Add(time.Duration(earliest * float64(has.until.Sub(has.from))))
		j.spare[o.UID] = j.excused[p] || j.misled[cluster]
		excused := j.spare[o.UID] || has.from.IsZero()
		if _, agent := csr.ParseClusterUser(o.Spec.Username); agent && asked.Before(early) && !excused {
			j.tell(about, "early: %s asks for a certificate (%s), and the last one is valid from %s until %s", o.Spec.Username,
				o.Name, has.from.Format(time.TimeOnly), has.until.Format(time.TimeOnly))
		}
	}
	if isApproved(o) && !j.approved[o.UID] {
		// It is judged once: its certificate may come long after people changed their mind.
		j.approved[o.UID] = true
		since, unwelcome := j.unwelcome[cluster]
		late := time.Since(since) > underWay || strings.Contains(o.Name, afterwards)
		if unwelcome && late {
			j.tell(about, "approved: request %s (%s) is approved, and the cluster is not accepted since %s", o.Name,
				o.Labels[names.LabelAddonName], since.UTC().Format("15:04:05.000"))
		}
	}
	if chain, err := cert.ParseCertsPEM(o.Status.Certificate); err == nil && chain[0].NotAfter.After(j.issued[p].until) {
		j.issued[p] = life{approvedAt(o), chain[0].NotAfter}
		if j.spare[o.UID] {
			j.issued[p] = life{until: chain[0].NotAfter} // it may come after the play, and the agent keeps the one that it has
		}
	}
}

func isApproved(o *certificatesv1.CertificateSigningRequest) bool { return !approvedAt(o).IsZero() }

// approvedAt returns when a request was approved, and zero if it was not. Its certificate counts from then on: it may
// be seen much later, and what it says itself is minutes before, for the sake of clocks.
func approvedAt(o *certificatesv1.CertificateSigningRequest) time.Time {
	for _, condition := range o.Status.Conditions {
		if condition.Type == certificatesv1.CertificateApproved {
			return condition.LastUpdateTime.Time
		}
	}
	return time.Time{}
}
