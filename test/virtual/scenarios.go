package virtual

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scenarios are all that may happen to the works of a cluster.
func scenarios() []scenario {
	plain := func(m *member) bool { return strings.HasPrefix(m.Name, "plain") }
	is := func(name string) func(*member) bool { return func(m *member) bool { return m.Name == name } }
	return []scenario{
		{"people delete and edit objects", plain, (*scene).hands},
		{"a manifest has no namespace", plain, (*scene).withoutNamespace},
		{"a manifest has another group", plain, (*scene).inAnotherGroup},
		{"the value of a Secret is a number", plain, (*scene).numberInSecret},
		{"a work has a role and its binding", plain, (*scene).roleAndBinding},
		{"an object moves between two owners", plain, (*scene).takenOver},
		{"a status flips all the time", plain, (*scene).flips},
		{"a kind is not served", plain, (*scene).unservedKind},

		{"lists of a kind fail", plain, (*scene).listsFail},
		{"a namespace is deleted while the hub is away", plain, (*scene).namespaceDeleted},
		{"the cluster is restored", plain, (*scene).clusterRestored},
		{"a list of records is old", plain, (*scene).oldRecords},
		{"the cluster does not serve records", plain, (*scene).recordsNotServed},

		{"a work is deleted while the agent is away", plain, (*scene).deletedMeanwhile},
		{"a new work is lost", plain, (*scene).newWorkLost},
		{"a list lacks a new work", plain, (*scene).newWorkUnlisted},
		{"the hub does not serve works", plain, (*scene).worksNotServed},
		{"a list of works is old", plain, (*scene).oldWorks},
		{"a list lacks the cluster", plain, (*scene).clusterUnlisted},
		{"a proxy has another time", plain, (*scene).proxyTime},
		{"the way to the hub is slow", plain, (*scene).slowHub},
		{"both API servers lie", plain, (*scene).bothLie},
		{"the hub is a black hole", is("crowd"), (*scene).blackHole},

		{"the kubeconfig of the cluster is broken", is("hosted"), (*scene).brokenKubeconfig},
		{"the storage of the cluster is away", is("hosted"), (*scene).storageAway},
		{"the kubeconfig of the cluster is missing", is("alone"), (*scene).missingKubeconfig},
		{"a hub is away when the agent starts", is("hubs"), (*scene).hubAway},
		{"a deletion waits", is("odd"), (*scene).deletionWaits},
		{"a work vanishes that has no grace", is("odd"), (*scene).vanishesAtOnce},
		{"a token cannot be stored", is("odd"), (*scene).tokenNotStored},
		{"a namespace may not be watched", is("odd"), (*scene).namespaceNotWatched},
		{"a lease may not be watched", is("odd"), (*scene).leaseNotWatched},
	}
}

// some draws a work.
func (s *scene) some() *userWork {
	all := s.model.all()
	return all[s.IntN(len(all))]
}

// minutes draws a time.
func (s *scene) minutes(least, most int) time.Duration {
	return time.Duration(least)*time.Minute + time.Duration(s.Int64N(int64(most-least+1)*int64(time.Minute)))
}

// web is the thing of a kind of a work.
func (u *userWork) web(kind string) thing { return thing{kind, u.space, "web"} }

// reconnect ends all that is under way on a link, as when an API server starts again.
func (l *link) reconnect() {
	l.cut()
	l.mend()
}

// spoil changes the value of a ConfigMap by hand, and returns it.
func (s *scene) spoil(u *userWork) thing {
	t := u.web("ConfigMap")
	o := s.get(s.member, t)
	if o == nil {
		s.wrong("repaired: %v does not exist", t)
		return t
	}
	o.Object["data"] = map[string]any{"value": handImage}
	s.must(s.onOwn().Update(s.ctx, o))
	return t
}

// repaired looks whether a thing is as its work says after a time.
func (s *scene) repaired(u *userWork, t thing, most time.Duration) {
	s.within(most, "repaired", func() string { return u.differs(t, s.get(s.member, t)) })
}

// hands deletes and edits things by hand.
func (s *scene) hands() {
	for range 6 {
		u := s.some()
		t := u.things[s.IntN(len(u.things))]
		if s.IntN(2) == 0 {
			s.model.hand(t)
			s.must(s.onOwn().Delete(s.ctx, t.object()))
		} else {
			t = s.spoil(u)
		}
		s.repaired(u, t, repaired)
		time.Sleep(s.minutes(0, 3))
	}
}

// mistake lets a work have a typing error for a while, which must cost no object; the judge looks at those.
func (s *scene) mistake(u *userWork, edit func(t thing, manifest map[string]any)) {
	s.write(s.member, u, edit)
	time.Sleep(s.minutes(1, 5))
	for _, t := range u.all() {
		if s.get(s.member, t) == nil {
			s.wrong("typing-error: %v is gone", t)
		}
	}
	s.put(s.member, u)
}

// withoutNamespace loses the namespace of a manifest.
func (s *scene) withoutNamespace() {
	u := s.some()
	lost := u.things[s.IntN(len(u.things))]
	s.mistake(u, func(t thing, manifest map[string]any) {
		if t == lost {
			unstructured.RemoveNestedField(manifest, "metadata", "namespace")
		}
	})
}

// inAnotherGroup makes a typing error in the group of a manifest.
func (s *scene) inAnotherGroup() {
	u := s.some()
	wrong := u.web([]string{"Deployment", "Role", "RoleBinding"}[s.IntN(3)])
	s.mistake(u, func(t thing, manifest map[string]any) {
		if t == wrong {
			version, _ := manifest["apiVersion"].(string)
			manifest["apiVersion"] = strings.Replace(version, "a", "aa", 1)
		}
	})
}

// numberInSecret forgets the quotes of a number in a Secret.
func (s *scene) numberInSecret() {
	u, pin := s.some(), 40_000_000+s.Int64N(10_000_000)
	s.mu.Lock()
	s.secrets = append(s.secrets, textOf(pin))
	s.mu.Unlock()
	s.mistake(u, func(t thing, manifest map[string]any) {
		if t.kind == "Secret" {
			manifest["stringData"] = map[string]any{"pin": pin}
		}
	})
}

// roleAndBinding makes a work with an executor, of which no manifest may fail on the way.
func (s *scene) roleAndBinding() {
	end := s.toOwn.suffer(hangs(time.Second, concerns("roles", "create"))) // which takes its time
	defer end()
	for i := range 3 {
		u := newUserWork("bound-" + textOf(int64(i)))
		u.executor = true
		s.model.mu.Lock()
		s.model.strict[u.name] = true
		s.model.mu.Unlock()
		s.put(s.member, u)
		s.within(time.Minute, "works-agree", func() string { return s.unreported(s.member, u.name) })
		s.agrees("a work with an executor")
		s.gone(u)
	}
}

// gone deletes a work and waits until it is gone.
func (s *scene) gone(u *userWork) {
	s.remove(u)
	s.within(10*time.Minute, "deleted", func() string {
		if s.work(s.member, u.name) != nil {
			return "work " + u.name + " is still there"
		}
		return ""
	})
	for _, t := range u.all() {
		if s.get(s.member, t) != nil && len(s.judge.found()) == 0 {
			s.wrong("nothing-left: work %s is gone, and %v is left", u.name, t)
		}
	}
}
