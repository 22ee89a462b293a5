package virtual

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/proxy"
)

// deletedMeanwhile deletes a work, and its objects by hand, while the agent does not run. The agent has a copy of the
// work, and finds a hub that answers.
func (s *scene) deletedMeanwhile() {
	u := newUserWork("short-lived")
	s.put(s.member, u)
	s.agrees("before the agent ends")
	time.Sleep(2 * time.Minute) // a copy is made
	s.disturb(30 * time.Minute)
	s.stopAll()
	s.remove(u)
	s.must(s.onOwn().Delete(s.ctx, thing{"Namespace", "", u.space}.object()))
	s.model.bury(u)
	end := s.toHub.suffer(hangs(3*time.Second, concerns("managedclusters", "get")))
	s.start(s.ctx)
	s.within(10*time.Minute, "deleted", func() string {
		if s.work(s.member, u.name) != nil {
			return "work " + u.name + " is still there"
		}
		return ""
	})
	end()
}

// newborn makes a work whose status the hub does not take, and waits until its objects are there.
func (s *scene) newborn() (u *userWork, end func()) {
	u = newUserWork("new")
	end = s.toHub.suffer(refuses(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"etcdserver: request timed out", writesStatus))
	s.put(s.member, u)
	s.within(30*time.Second, "applied", func() string {
		for _, t := range u.all() {
			if s.get(s.member, t) == nil {
				return fmt.Sprintf("%v does not exist", t)
			}
		}
		return ""
	})
	return u, end
}

// newWorkLost lets the hub come back from a backup that is older than a new work.
func (s *scene) newWorkLost() {
	u, end := s.newborn()
	time.Sleep(s.minutes(2, 5))
	s.vanish(u)
	end()
	time.Sleep(s.minutes(1, 5))
	s.put(s.member, u)
	s.agrees("when the work is back")
	s.gone(u)
}

// newWorkUnlisted lets the agent lose sight of a new work that is there.
func (s *scene) newWorkUnlisted() {
	u, end := s.newborn()
	unlisted := s.toHub.suffer(emptyList(concerns("manifestworks", "list", "watch")))
	s.toHub.reconnect()
	time.Sleep(s.minutes(1, 5))
	unlisted()
	end()
	s.toHub.reconnect()
	s.agrees("when the list is whole")
	s.gone(u)
}

// backUnseen takes a work from the hub and brings it back before its grace is over, which the agent cannot see for a
// fault that lasts until after that.
func (s *scene) backUnseen(f *fault) {
	u := s.some()
	s.disturb(time.Hour)
	s.vanish(u)
	time.Sleep(vanishGrace - 2*time.Minute)
	end := s.toHub.suffer(f)
	s.toHub.reconnect()
	s.put(s.member, u)
	time.Sleep(2*time.Minute + s.minutes(1, 5))
	end()
	s.toHub.reconnect()
	s.agrees("when works are seen again")
}

// worksNotServed lets the hub serve no works while a grace ends.
func (s *scene) worksNotServed() {
	s.backUnseen(notServed(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifestworks") }))
}

// oldWorks lets the lists of works stay old while a grace ends.
func (s *scene) oldWorks() { s.backUnseen(hangs(0, concerns("manifestworks", "list", "watch"))) }

// managedLabel begins the label of a namespace that a hub manages.
const managedLabel = "clusterset.open-cluster-management.io/"

// clusterUnlisted lets the agent lose sight of its ManagedCluster, which manages a namespace.
func (s *scene) clusterUnlisted() {
	const space = "managed"
	manage := func(managed ...clusterv1.ClusterSetManagedNamespaceConfig) {
		s.within(time.Minute, "written", func() string {
			var c clusterv1.ManagedCluster
			err := s.onHub().Get(s.ctx, client.ObjectKey{Name: s.Name}, &c)
			if c.Status.ManagedNamespaces = managed; err == nil {
				err = s.onHub().Status().Update(s.ctx, &c)
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
	labeled := func(want string) func() string {
		return func() string {
			var n corev1.Namespace
			if err := s.onOwn().Get(s.ctx, client.ObjectKey{Name: space}, &n); err != nil {
				return err.Error()
			}
			for key, value := range n.Labels {
				if strings.HasPrefix(key, managedLabel) && value == want {
					return ""
				}
			}
			return fmt.Sprintf("namespace %s is not marked %s: %v", space, want, n.Labels)
		}
	}
	manage(clusterv1.ClusterSetManagedNamespaceConfig{
		ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: space}, ClusterSet: "default",
	})
	s.within(5*time.Minute, "marked", labeled("true"))
	s.disturb(30 * time.Minute)
	end := s.toHub.suffer(emptyList(concerns("managedclusters", "list", "watch")))
	s.toHub.reconnect()
	for range s.IntN(5) + 5 {
		time.Sleep(30 * time.Second)
		if text := labeled("true")(); text != "" {
			s.wrong("unconfirmed: %s, although the hub manages it", text)
		}
	}
	end()
	s.toHub.reconnect()
	time.Sleep(2 * time.Minute)
	manage()
	s.within(5*time.Minute, "marked", labeled("false"))
	s.must(s.onOwn().Delete(s.ctx, thing{"Namespace", "", space}.object()))
}

// mostCertificates is how many certificates a cluster with one add-on may ask for in less than half an hour.
const mostCertificates = 4

// proxyTime lets a proxy before the hub, whose clock is a year ahead, refuse each third request.
func (s *scene) proxyTime() {
	asked := func() int {
		var all certificatesv1.CertificateSigningRequestList
		s.must(s.onHub().List(s.ctx, &all, client.MatchingLabels{names.LabelClusterName: s.Name}))
		return len(all.Items)
	}
	before, counter := asked(), atomic.Int64{}
	s.disturb(time.Hour)
	f := refuses(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no healthy upstream",
		func(*http.Request) bool { return counter.Add(1)%3 == 0 })
	refuse := f.do
	f.do = func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		response, err := refuse(r, to)
		response.Header.Set("Date", time.Now().Add(365*24*time.Hour).UTC().Format(http.TimeFormat))
		time.AfterFunc(100*time.Millisecond, s.editAddOn) // before another answer has the right time
		return response, err
	}
	end := s.toHub.suffer(f)
	time.Sleep(20 * time.Minute)
	end()
	if n := asked() - before; n > mostCertificates {
		s.wrong("bounded: the agent asked for %d certificates in twenty minutes", n)
	}
}

// editAddOn changes a label of the add-on of the cluster, at which the agent looks.
func (s *scene) editAddOn() {
	addOn, _ := addOnOf(s.Name, worksAddOn)
	if s.onHub().Get(s.ctx, client.ObjectKeyFromObject(addOn), addOn) != nil {
		return
	}
	labels := maps.Clone(addOn.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["example.com/edited"] = textOf(time.Now().UnixMilli())
	addOn.Labels = labels
	_ = s.onHub().Update(s.ctx, addOn) // another writer may be faster
}

// slowHub lets statuses take long on their way to the hub.
func (s *scene) slowHub() {
	end := s.toHub.suffer(hangs(time.Duration(5+s.IntN(15))*time.Second, writesStatus))
	for i := range 3 {
		u := s.some()
		u.value = fmt.Sprint("slow-", i)
		s.put(s.member, u)
		s.within(3*time.Minute, "reported over a slow way", func() string { return s.unreported(s.member, u.name) })
	}
	end()
}

// bothLie lets both API servers lie while people make, edit and delete works.
func (s *scene) bothLie() {
	s.disturb(time.Hour)
	for i := range 4 {
		for _, l := range []*link{s.toHub, s.toOwn} {
			lies := proxy.Draw(s.Uint64())
			lies.Hang, lies.Date = 0, 0
			s.options.Log.Info("lies begin", "cluster", s.Name, "lies", lies.String())
			l.lie(lies)
		}
		u := newUserWork(fmt.Sprint("lied-", i))
		s.put(s.member, u)
		time.Sleep(time.Duration(s.IntN(90)) * time.Second)
		u.value = "v1"
		u.things = u.things[:len(u.things)-s.IntN(2)]
		s.model.hand(u.web("ConfigMap"))
		s.put(s.member, u)
		time.Sleep(time.Duration(s.IntN(90)) * time.Second)
		s.remove(u)
		time.Sleep(time.Duration(s.IntN(90)) * time.Second)
	}
	s.toHub.honest()
	s.toOwn.honest()
	s.within(15*time.Minute, "deleted", func() string {
		for i := range 4 {
			if s.work(s.member, fmt.Sprint("lied-", i)) != nil {
				return fmt.Sprintf("work lied-%d is still there", i)
			}
		}
		return ""
	})
}

// blackHole lets statuses get no answer at all while those of many works change, and edits objects by hand.
func (s *scene) blackHole() {
	const crowd = 80
	var all []*userWork
	for i := range crowd {
		u := &userWork{name: fmt.Sprint("crowd-", i), space: "default", value: "v0", feedback: true}
		u.things = []thing{{"Deployment", "default", u.name}}
		s.put(s.member, u)
		all = append(all, u)
	}
	s.agrees("before the hub is a black hole")
	end := s.toHub.suffer(hangs(0, writesStatus))
	u := s.model.all()[crowd]
	for round := range 60 {
		for i, u := range all {
			s.flip(u.things[0], int64(2+round+i%2))
		}
		time.Sleep(4 * time.Second)
		if round%15 == 14 {
			s.repaired(u, s.spoil(u), repaired)
		}
	}
	end()
	time.Sleep(2 * time.Minute)
	for _, u := range all {
		s.remove(u)
	}
	time.Sleep(5 * time.Minute)
}

// restoreHub restores the hub to the same state in earlier versions, and edits works of all clusters.
func (f *fleet) restoreHub() {
	f.judge.count("the hub is restored")
	f.judge.disturb("", time.Now().Add(time.Hour))
	backup := f.hub.Backup()
	f.age(f.admin)
	f.hub.Restore(backup)
	time.Sleep(time.Minute)
	for _, m := range f.members {
		u := m.model.all()[0]
		u.value = "after the restore"
		f.put(m, u)
	}
	for _, m := range f.members {
		if err := f.untilNone(worksPatience, func() []string { return f.differencesOf(m) }); err != nil {
			f.judge.violated("comes-back: after a restore of the hub: %v", err)
		}
	}
}
