package virtual

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func textOf(n int64) string { return strconv.FormatInt(n, 10) }

// counts is a fault that changes nothing and counts requests.
func counts(into *atomic.Int64, on func(*http.Request) bool) *fault {
	return &fault{on: on, do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		into.Add(1)
		return to.RoundTrip(r)
	}}
}

// takenOver takes a ConfigMap from a work while another client takes it over, between two requests of the agent.
func (s *scene) takenOver() {
	u := newUserWork("moved")
	u.things = append(u.things, thing{"ConfigMap", u.space, "shared"})
	s.put(s.member, u)
	s.agrees("before the object moves")
	other := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "other-hub-moved"}}
	other.Spec = workv1.AppliedManifestWorkSpec{HubHash: "other-hub", AgentID: "other", ManifestWorkName: "moved"}
	s.must(s.onOwn().Create(s.ctx, other))
	shared := u.things[len(u.things)-1]
	edit := func(change func(o *unstructured.Unstructured)) {
		if o := s.get(s.member, shared); o != nil {
			change(o)
			s.must(s.onOwn().Update(s.ctx, o))
		}
	}
	var touched, taken atomic.Bool
	end := s.toOwn.suffer(&fault{
		on: func(r *http.Request) bool {
			_, resource, name := about(r)
			return resource == "configmaps" && name == shared.name
		},
		do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodDelete && !touched.Swap(true) {
				edit(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"touched": "yes"}) })
			}
			response, err := to.RoundTrip(r)
			if r.Method == http.MethodGet && touched.Load() && !taken.Swap(true) {
				edit(func(o *unstructured.Unstructured) {
					o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
						APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork", Name: other.Name, UID: other.UID,
					}))
				})
			}
			return response, err
		},
	})
	u.things = u.things[:len(u.things)-1]
	s.model.hand(shared)
	s.put(s.member, u)
	time.Sleep(s.minutes(1, 2))
	end()
	if !taken.Load() {
		s.wrong("the agent did not read the object again")
	}
	if s.get(s.member, shared) == nil {
		s.wrong("nothing-taken: %v was deleted, which somebody else took over", shared)
	} else {
		s.must(s.onOwn().Delete(s.ctx, shared.object()))
	}
	s.must(s.onOwn().Delete(s.ctx, other))
	s.gone(u)
}

// mostStatuses is how often the status of a work may be written in a minute, after the first ones.
const mostStatuses = 20

// flips lets the status of a Deployment change each second, of which a work reports a value.
func (s *scene) flips() {
	u := s.model.all()[0]
	var written atomic.Int64
	end := s.toHub.suffer(counts(&written, writesStatus))
	defer end()
	for minute := range 4 {
		written.Store(0)
		for second := range 60 {
			s.flip(u.web("Deployment"), int64(2+second+60*minute))
			time.Sleep(time.Second)
		}
		if n := written.Load(); minute > 0 && n > mostStatuses {
			s.wrong("bounded: the agent wrote %d statuses in a minute, in which a value changed each second", n)
		}
	}
	s.flip(u.web("Deployment"), 1)
	s.within(2*time.Minute, "works-agree", func() string {
		w := s.work(s.member, u.name)
		if w == nil {
			return "the work is gone"
		}
		for _, m := range w.Status.ResourceStatus.Manifests {
			for _, v := range m.StatusFeedbacks.Values {
				if v.Value.Integer != nil && *v.Value.Integer == 1 {
					return ""
				}
			}
		}
		return fmt.Sprintf("the work does not report the last value: %v", w.Status.ResourceStatus)
	})
}

// flip sets a value in the status of a Deployment.
func (s *scene) flip(t thing, replicas int64) {
	o := s.get(s.member, t)
	if o == nil {
		return
	}
	_ = unstructured.SetNestedField(o.Object, replicas, "status", "replicas")
	_ = s.onOwn().Status().Update(s.ctx, o) // another writer may be faster
}

// mostLooks is how often an agent may ask in an hour what an API server serves, while a kind is missing.
const mostLooks = 30

// unservedKind has a work with a kind that the cluster does not serve.
func (s *scene) unservedKind() {
	u := &userWork{name: "gadgets", space: "default", value: "v0", things: []thing{{"Gadget", "default", "web"}}}
	s.write(s.member, u, nil)
	time.Sleep(30 * time.Minute)
	var looks atomic.Int64
	discovers := func(r *http.Request) bool {
		return r.URL.Path == "/apis" || strings.HasPrefix(r.URL.Path, "/apis/example.com")
	}
	end := s.toOwn.suffer(counts(&looks, discovers))
	time.Sleep(time.Hour)
	end()
	if n := looks.Load(); n > mostLooks {
		s.wrong("bounded: the agent asked %d times in an hour what the cluster serves", n)
	}
	s.gone(u)
}

// listsFail lets lists and watches of ConfigMaps fail for an hour, in which objects can be read.
func (s *scene) listsFail() {
	end := s.toOwn.suffer(refuses(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"conversion webhook failed", concerns("configmaps", "list", "watch")))
	s.toOwn.reconnect()
	time.Sleep(s.minutes(2, 10))
	for range 2 {
		u := s.some()
		s.repaired(u, s.spoil(u), 9*time.Minute)
		time.Sleep(s.minutes(1, 10))
	}
	end()
	time.Sleep(6 * time.Minute) // the pauses of a watch that fails
}

// namespaceDeleted deletes a namespace while the hub is away, and lets nothing be made in it for a while.
func (s *scene) namespaceDeleted() {
	u := newUserWork("offline")
	s.put(s.member, u)
	s.agrees("before the first edit")
	u.things = append(u.things, thing{"ConfigMap", u.space, "second"}) // the objects leave the intent with it
	s.put(s.member, u)
	s.agrees("before the hub is away")
	time.Sleep(2 * time.Minute) // a copy is made
	s.disturb(2 * time.Hour)
	s.toHub.cut()
	s.restart(0)
	time.Sleep(s.minutes(1, 3))
	end := s.toOwn.suffer(refuses(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: count",
		func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/namespaces/"+u.space+"/")
		}))
	s.model.hand(thing{"Namespace", "", u.space})
	s.must(s.onOwn().Delete(s.ctx, thing{"Namespace", "", u.space}.object()))
	time.Sleep(s.minutes(1, 5))
	end()
	s.within(12*time.Minute, "repaired while the hub is away", func() string {
		for _, t := range u.all() {
			if text := u.differs(t, s.get(s.member, t)); text != "" {
				return fmt.Sprintf("%v: %s", t, text)
			}
		}
		return ""
	})
	s.toHub.mend()
	s.agrees("when the hub is back")
	s.gone(u)
}

// restart ends the agent and starts it again after a pause.
func (s *scene) restart(pause time.Duration) {
	s.disturb(pause + startTime)
	s.stopAll()
	time.Sleep(pause)
	s.start(s.ctx)
}

// stopAll ends the programs of the agent.
func (m *member) stopAll() {
	m.agent.stop()
	if m.worker != nil {
		m.worker.stop()
	}
}

// clusterRestored restores the cluster to a state in which a work had fewer objects.
func (s *scene) clusterRestored() {
	u := newUserWork("restored")
	s.put(s.member, u)
	s.agrees("before the backup")
	s.disturb(time.Hour)
	backup := s.server.Backup()
	u.things = append(u.things, thing{"ConfigMap", u.space, "second"})
	s.put(s.member, u)
	s.age(s.onOwn())
	s.agrees("before the restore")
	s.model.hand(u.things[len(u.things)-1])
	s.server.Restore(backup)
	time.Sleep(s.minutes(1, 3))
	u.things = append(u.things, thing{"ConfigMap", u.space, "third"})
	u.value = "v1"
	s.put(s.member, u)
	s.agrees("after the restore")
	s.gone(u)
}

// age writes some hundred versions.
func (f *fleet) age(c client.Client) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "age"}}
	_ = c.Create(f.ctx, o)
	for i := range 400 {
		o.Data = map[string]string{"age": strconv.Itoa(i)}
		_ = c.Update(f.ctx, o)
	}
	_ = c.Delete(f.ctx, o)
	time.Sleep(time.Minute)
}

// startBlind starts the agent again with a list of records that shows none.
func (s *scene) startBlind() (end func()) {
	end = s.toOwn.suffer(emptyList(concerns("appliedmanifestworks", "list", "watch")))
	s.restart(0)
	time.Sleep(3 * time.Minute)
	return end
}

// oldRecords deletes a work while the list of the agent's records is old.
func (s *scene) oldRecords() {
	u := newUserWork("recorded")
	s.put(s.member, u)
	s.agrees("before the agent starts again")
	s.disturb(time.Hour)
	end := s.startBlind()
	s.gone(u)
	end()
	s.toOwn.reconnect()
}

// recordsNotServed does the same, and the cluster does not serve records at all for a while.
func (s *scene) recordsNotServed() {
	u := newUserWork("recorded")
	s.put(s.member, u)
	s.agrees("before the agent starts again")
	s.disturb(time.Hour)
	end := s.startBlind()
	served := s.toOwn.suffer(notServed(concerns("appliedmanifestworks", "get", "create", "update", "patch", "delete")))
	s.remove(u)
	time.Sleep(s.minutes(2, 5))
	served()
	end()
	s.toOwn.reconnect()
	s.within(10*time.Minute, "deleted", func() string {
		if s.work(s.member, u.name) != nil {
			return "work " + u.name + " is still there"
		}
		return ""
	})
}
