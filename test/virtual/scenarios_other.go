package virtual

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// addOnOf is an add-on of a cluster, without content.
func addOnOf(cluster, name string) (*addonv1alpha1.ManagedClusterAddOn, client.ObjectKey) {
	a := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	return a, client.ObjectKeyFromObject(a)
}

// mostRequests is how many requests an agent may send in a minute where it runs, while nothing changes.
const mostRequests = 60

// brokenKubeconfig breaks the kubeconfig of the managed cluster for a while. The agent goes on with the former one.
func (s *scene) brokenKubeconfig() {
	good, err := os.ReadFile(s.kubeconfig)
	s.must(err)
	config := &rest.Config{Host: "https://" + s.Name + ".own"}
	config.CAData = []byte("this is no certificate")
	broken, err := sandbox.Kubeconfig(s.Name, config)
	s.must(err)
	s.must(os.WriteFile(s.kubeconfig, broken, 0o600))
	var sent atomic.Int64
	end := s.toHost.suffer(counts(&sent, nil))
	for range 10 {
		if !s.pause(time.Minute) {
			break
		}
		if n := sent.Swap(0); n > mostRequests {
			s.wrong("no-loop: the agent sent %d requests in a minute where it runs", n)
		}
		u := s.some()
		s.repaired(u, s.spoil(u), repaired)
	}
	end()
	s.must(os.WriteFile(s.kubeconfig, good, 0o600))
	time.Sleep(2 * time.Minute)
}

// missingKubeconfig takes the kubeconfig of the managed cluster away while the program that does works starts again.
func (s *scene) missingKubeconfig() {
	good, err := os.ReadFile(s.kubeconfig)
	s.must(err)
	s.disturb(time.Hour)
	s.worker.stop()
	s.must(os.Remove(s.kubeconfig))
	var sent atomic.Int64
	end := s.toHost.suffer(counts(&sent, nil))
	s.worker.start(s.ctx)
	for range 10 {
		if !s.pause(time.Minute) {
			break
		}
		if n := sent.Swap(0); n > mostRequests {
			s.wrong("no-loop: the agent sent %d requests in a minute where it runs", n)
		}
	}
	end()
	s.must(os.WriteFile(s.kubeconfig, good, 0o600))
	time.Sleep(2 * time.Minute)
}

// storageAway lets the API server of the cluster say that it is not well, while its watches go on.
func (s *scene) storageAway() {
	available := func(want bool) func() string {
		return func() string {
			var c clusterv1.ManagedCluster
			s.must(s.onHub().Get(s.ctx, client.ObjectKey{Name: s.Name}, &c))
			is := meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
			if is == want {
				return ""
			}
			return fmt.Sprintf("the cluster is available: %t", is)
		}
	}
	s.disturb(30 * time.Minute)
	end := s.toOwn.suffer(refuses(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd failed",
		func(r *http.Request) bool { return r.URL.Path == "/livez" || r.URL.Path == "/healthz" }))
	s.within(5*time.Minute, "its storage is away", available(false))
	end()
	s.within(5*time.Minute, "its storage is back", available(true))
}

// hubAway starts the agent while its hub is away, and another one is there that has not accepted the cluster.
func (s *scene) hubAway() {
	s.disturb(time.Hour)
	s.toHub.cut()
	s.restart(0)
	time.Sleep(s.minutes(1, 20))
	s.toHub.mend()
}

// holding is a finalizer of others.
const holding = "example.com/holding"

// deletionWaits deletes a work of which an object is held, and looks whether the ranks after it wait, although the
// clock of the API server is behind.
func (s *scene) deletionWaits() {
	u := newUserWork("held")
	s.put(s.member, u)
	s.agrees("before the deletion")
	t := u.web("Deployment")
	o := s.get(s.member, t)
	o.SetFinalizers([]string{holding})
	s.must(s.onOwn().Update(s.ctx, o))
	s.remove(u)
	for range 8 {
		time.Sleep(30 * time.Second)
		for _, kind := range []string{"ConfigMap", "Role"} {
			if s.get(s.member, u.web(kind)) == nil {
				s.wrong("deletion-order: %v went before %v, which is held", u.web(kind), t)
			}
		}
	}
	if o = s.get(s.member, t); o != nil {
		o.SetFinalizers(nil)
		s.must(s.onOwn().Update(s.ctx, o))
	}
	s.within(10*time.Minute, "deleted", func() string {
		if s.work(s.member, u.name) != nil {
			return "work " + u.name + " is still there"
		}
		return ""
	})
}

// vanishesAtOnce takes a work from the hub, whose objects go at once by the settings of the agent.
func (s *scene) vanishesAtOnce() {
	u := newUserWork("vanishing")
	s.put(s.member, u)
	s.agrees("before the work vanishes")
	s.model.unset(u)
	s.vanish(u)
	s.within(2*time.Minute, "evicted at once", func() string {
		for _, t := range u.all() {
			if s.get(s.member, t) != nil {
				return fmt.Sprintf("%v is left", t)
			}
		}
		return ""
	})
}

// tokenNotStored lets a token be stored nowhere for a while.
func (s *scene) tokenNotStored() {
	var asked atomic.Int64
	counted := s.toHub.suffer(counts(&asked, concerns("serviceaccounts/token", "create")))
	end := s.toOwn.suffer(refuses(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: secrets",
		concerns("secrets", "create")))
	s.disturb(time.Hour)
	s.must(s.onOwn().Delete(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.NamespaceAgentAddon, Name: credentialOf(worksAddOn),
	}}))
	time.Sleep(20 * time.Minute)
	if n := asked.Load(); n > 2 {
		s.wrong("bounded: the agent asked for %d tokens, none of which can be stored", n)
	}
	end()
	counted()
}

// probeAddOn is an add-on of which a program elsewhere takes care.
const probeAddOn = "probe"

// probe makes the add-on on the hub, whose health is known in some way, and removes it.
func (s *scene) probe(health addonv1alpha1.HealthCheckMode) (remove func()) {
	a, _ := addOnOf(s.Name, probeAddOn)
	s.must(s.onHub().Create(s.ctx, a))
	a.Status.Namespace = probeAddOn
	a.Status.HealthCheck.Mode = health
	a.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
		SignerName: "kubernetes.io/kube-apiserver-client",
		Subject:    addonv1alpha1.Subject{User: "probe", Groups: []string{"probes"}},
	}}
	meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnRegistrationApplied, Status: metav1.ConditionTrue, Reason: "Set",
	})
	s.must(s.onHub().Status().Update(s.ctx, a))
	return func() {
		a, _ := addOnOf(s.Name, probeAddOn)
		s.must(s.onHub().Delete(s.ctx, a))
		s.within(10*time.Minute, "deleted", func() string {
			if _, key := addOnOf(s.Name, probeAddOn); s.onHub().Get(s.ctx, key, a) == nil {
				return "the add-on is still there"
			}
			return ""
		})
		space := thing{"Namespace", "", probeAddOn}
		if s.get(s.member, space) != nil {
			s.must(s.onOwn().Delete(s.ctx, space.object()))
		}
	}
}

// credential says that the add-on has no credential; empty when it has one.
func (s *scene) credential() string {
	return strings.Join(s.withoutCredential(s.member, probeAddOn), ", ")
}

// namespaceNotWatched makes the namespace of an add-on long after the add-on, where namespaces may not be watched.
func (s *scene) namespaceNotWatched() {
	remove := s.probe(addonv1alpha1.HealthCheckModeCustomized) // of which nothing wakes the agent
	time.Sleep(s.minutes(5, 20))
	s.must(create(s.ctx, s.onOwn(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: probeAddOn}}))
	s.within(3*time.Minute, "the namespace is there", s.credential)
	remove()
}

// leaseNotWatched takes the right away to watch the lease of an add-on that stops then.
func (s *scene) leaseNotWatched() {
	s.must(create(s.ctx, s.onOwn(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: probeAddOn}}))
	remove := s.probe(addonv1alpha1.HealthCheckModeLease)
	var stopped atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stopped.Load() {
			now := metav1.NowMicro()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: probeAddOn, Name: probeAddOn}}
			err := s.onOwn().Get(s.ctx, client.ObjectKeyFromObject(lease), lease)
			if lease.Spec.RenewTime = &now; err == nil {
				err = s.onOwn().Update(s.ctx, lease)
			} else {
				err = s.onOwn().Create(s.ctx, lease)
			}
			if err != nil && !errors.Is(err, s.ctx.Err()) {
				s.wrong("renewing a lease: %v", err)
			}
			time.Sleep(30 * time.Second)
		}
	}()
	available := func(want bool) func() string {
		return func() string {
			a, key := addOnOf(s.Name, probeAddOn)
			s.must(s.onHub().Get(s.ctx, key, a))
			is := meta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
			if is == want {
				return ""
			}
			return fmt.Sprintf("the add-on is available: %t: %v", is, a.Status.Conditions)
		}
	}
	s.within(5*time.Minute, "the add-on renews its lease", available(true))
	end := s.toOwn.suffer(refuses(http.StatusForbidden, metav1.StatusReasonForbidden, "leases is forbidden",
		concerns("leases", "list", "watch")))
	s.toOwn.reconnect()
	stopped.Store(true)
	<-ended
	s.within(20*time.Minute, "the add-on stopped", available(false))
	end()
	remove()
}
