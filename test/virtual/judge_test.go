package virtual

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// deploymentWith is the Deployment of an add-on with an image.
func deploymentWith(addOn, image string, available bool) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: addOn}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	if available {
		d.Status.AvailableReplicas = 1
	}
	return d
}

// deleting is an add-on that is being deleted.
func deleting(o one) *addonv1alpha1.ManagedClusterAddOn {
	now := metav1.Now()
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn, DeletionTimestamp: &now},
	}
}

// Shows: invariants/selected-stays, invariants/nothing-taken, invariants/slots, invariants/never-expired
// Shows: invariants/no-loop, invariants/failures-stop, invariants/groups-in-order, invariants/told-truly
// Shows: invariants/never-back
func TestTheJudgeNoticesWhatMustNotHappen(t *testing.T) {
	o := one{"store", "logs"}
	upgraded := func(j *judge, clusters int) {
		for i := range clusters {
			other := one{addOnName(i), o.addOn}
			j.wants(other, true)
			j.deployment(watch.Added, other, deploymentWith(o.addOn, "v0", true))
			j.deployment(watch.Modified, other, deploymentWith(o.addOn, "v1", false))
		}
	}
	for sentence, tc := range map[string]struct {
		happens func(*judge)
		told    string
	}{
		"an add-on that is selected goes": {func(j *judge) { j.addOn(watch.Modified, deleting(o)) }, "selected-stays: "},
		"an add-on goes that people took away": {func(j *judge) {
			j.wants(o, false)
			j.addOn(watch.Modified, deleting(o))
		}, ""},
		"an object goes that is wanted": {
			func(j *judge) { j.deployment(watch.Deleted, o, deploymentWith(o.addOn, "v0", true)) }, "nothing-taken: ",
		},
		"an object goes that people delete": {func(j *judge) {
			j.handed(o)
			j.deployment(watch.Deleted, o, deploymentWith(o.addOn, "v0", true))
		}, ""},
		"a cluster sees after an outage that an add-on was taken away in it": {func(j *judge) {
			j.disturb(o.cluster, time.Now().Add(time.Hour))
			j.handed(o)
			time.Sleep(time.Hour + time.Minute)
			j.deployment(watch.Deleted, o, deploymentWith(o.addOn, "v0", true))
		}, ""},
		"an object goes long after such an outage": {func(j *judge) {
			j.disturb(o.cluster, time.Now().Add(time.Hour))
			j.handed(o)
			time.Sleep(2 * time.Hour)
			j.deployment(watch.Deleted, o, deploymentWith(o.addOn, "v0", true))
		}, "nothing-taken: "},
		"as many clusters move as may": {func(j *judge) { upgraded(j, atOnce) }, ""},
		"one more moves than may":      {func(j *judge) { upgraded(j, atOnce+1) }, "slots: "},
		"one that is well moves before one that is broken": {func(j *judge) {
			upgraded(j, 1)
			well := one{"well", o.addOn}
			j.wants(well, true)
			j.deployment(watch.Added, well, deploymentWith(o.addOn, "v0", true))
			time.Sleep(time.Hour)
			j.deployment(watch.Modified, well, deploymentWith(o.addOn, "v2", false))
			time.Sleep(time.Minute)
		}, "broken-first: "},
		"a work gets an earlier image": {func(j *judge) {
			for _, image := range []string{"v2", "bad-10", "v9"} {
				j.work(watch.Modified, workWith(o, image))
			}
		}, "never-back: "},
		"a work that is made again has any image": {func(j *judge) {
			j.work(watch.Modified, workWith(o, "v9"))
			j.work(watch.Deleted, workWith(o, "v9"))
			j.work(watch.Added, workWith(o, "v2"))
		}, ""},
		"a cluster gets what failed on another one as it soaked": {func(j *judge) { fails(j, soak/2) }, "failures-stop: "},
		"a cluster gets what broke on another one at once":       {func(j *judge) { fails(j, time.Second) }, ""},
		"a cluster gets what failed on another one later":        {func(j *judge) { fails(j, 2*soak) }, ""},
		"a cluster gets what the canary does not have": {func(j *judge) {
			j.deployment(watch.Added, one{"store", grouping}, deploymentWith(grouping, "v1", false))
		}, "groups-in-order: "},
		"a cluster gets what the canary has": {func(j *judge) {
			j.deployment(watch.Added, one{"canary", grouping}, deploymentWith(grouping, "v1", true))
			j.deployment(watch.Added, one{"store", grouping}, deploymentWith(grouping, "v1", false))
		}, ""},
		"an add-on is said to be complete and has no pod": {func(j *judge) { completes(j, false) }, "told-truly: "},
		"an add-on is said to be complete and is":         {func(j *judge) { completes(j, true) }, ""},
		"a program ends by itself":                        {func(j *judge) { j.ended(o.cluster, assert.AnError) }, assert.AnError.Error()},
		"a program ends in an outage":                     {func(j *judge) { j.disturb("", time.Now()); j.ended(o.cluster, assert.AnError) }, ""},
		"a program asks the same again and again":         {asks(mostAtOnce + 1), "loop: the agent sends GET /api/v1/nodes/n"},
		"a program asks the same as often as it may":      {asks(mostAtOnce), ""},
		"a certificate ends although nothing is wrong": {func(j *judge) {
			j.expires[o] = time.Now()
			time.Sleep(2 * time.Minute)
		}, "never-expired: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJudge(&World{
					options: Options{Log: logr.Discard()}, ctx: t.Context(), clusters: []*Cluster{{Name: "canary"}, {Name: "canary2"}},
				})
				go j.tick()
				j.wants(o, true)
				j.wants(one{"canary", grouping}, true)
				time.Sleep(time.Hour)
				tc.happens(j)
				if tc.told == "" {
					assert.Empty(t, j.found())
					return
				}
				require.NotEmpty(t, j.found())
				assert.Contains(t, j.found()[0], tc.told)
			})
		})
	}
}

// grouping is an add-on that goes to the canaries first.
const grouping = "addon-01"

// fails lets an image run on one cluster for some time, fail there, and come to another one.
func fails(j *judge, after time.Duration) {
	first, next := one{"store", "logs"}, one{"other", "logs"}
	j.wants(next, true)
	for _, o := range []one{first, next} {
		j.deployment(watch.Added, o, deploymentWith(o.addOn, "v0", true))
	}
	j.deployment(watch.Modified, first, deploymentWith(first.addOn, "v1", true))
	time.Sleep(after)
	j.deployment(watch.Modified, first, deploymentWith(first.addOn, "v1", false))
	time.Sleep(time.Minute)
	j.deployment(watch.Modified, next, deploymentWith(next.addOn, "v1", false))
}

// completes lets an add-on move to an image and say that it has it.
func completes(j *judge, available bool) {
	o := one{"store", "logs"}
	says := func(reason string) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn}}
		addOn.Status.Conditions = []metav1.Condition{{
			Type: addonv1alpha1.ManagedClusterAddOnConditionProgressing, Reason: reason,
		}}
		j.addOn(watch.Modified, addOn)
	}
	says(addonv1alpha1.ProgressingReasonProgressing)
	j.deployment(watch.Added, o, deploymentWith(o.addOn, "v1", false))
	says(addonv1alpha1.ProgressingReasonCompleted)
	j.deployment(watch.Modified, o, deploymentWith(o.addOn, "v1", available))
	time.Sleep(time.Minute)
}

// asks sends the same request some times at one instant.
func asks(times int) func(*judge) {
	return func(j *judge) {
		l := newLink("the agent", http.NewFileTransport(http.Dir("/nowhere")), j.loops("the agent"))
		for range times {
			request, err := http.NewRequestWithContext(j.world.ctx, http.MethodGet, "http://own/api/v1/nodes/n", http.NoBody)
			if err != nil {
				panic(err)
			}
			response, err := l.RoundTrip(request)
			if err != nil {
				panic(err)
			}
			_ = response.Body.Close()
		}
	}
}

// An add-on without finalizers is never seen with a deletionTimestamp: its only event is that it is gone.
func TestTheJudgeNoticesAnAddOnThatGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := one{"store", "logs"}
		j := newJudge(&World{options: Options{Log: logr.Discard()}, ctx: t.Context()})
		j.wants(o, true)
		time.Sleep(time.Hour)
		j.addOn(watch.Deleted, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn}})
		assert.NotEmpty(t, j.found())
	})
}

func workWith(o one, image string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.cluster, Name: "work", Labels: map[string]string{addonv1alpha1.AddonLabelKey: o.addOn},
	}}
	w.Spec.Workload = template(o.addOn, image).Spec.AgentSpec.Workload
	return w
}
