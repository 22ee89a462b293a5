package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
)

// reported is a cluster before and after a status of its agent in which no expression of the test looks at what changed.
func reported(m *memory) (older, newer *clusterv1.ManagedCluster) {
	older = &clusterv1.ManagedCluster{
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		ObjectMeta: metav1.ObjectMeta{
			Name: "x", UID: "u", ResourceVersion: "1", Labels: map[string]string{clusterv1beta2.ClusterSetLabel: "blue"},
		},
	}
	m.concernedBy(nil, older)
	newer = older.DeepCopy()
	newer.ResourceVersion, newer.Status.Conditions = "2", []metav1.Condition{{Type: "Whatever"}}
	return older, newer
}

// All changes of clusters wait for each other, so that what one of them costs must be bounded whatever tenants write.
//
// Shows: hub/event-bounded
func TestAStatusOfOneClusterCompilesNothing(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon()), Passes: &fleet.Passes{}}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	m := &r.memory
	for i := range 30 { // more than the programs that are kept
		var spec clusterv1beta1.PlacementSpec
		for n := range maxExpressions {
			text := fmt.Sprintf("managedCluster.metadata.name == '%d/%d'", i, n) + strings.Repeat("||[1].all(x,x<0)", 28)
			spec.Predicates = append(spec.Predicates, byCEL(text))
		}
		observer(m, fmt.Sprint("p", i), spec, setGlobal)
	}
	older, newer := reported(m)
	taken := allocatedBy(func() {
		r.batched(r.ofCluster).Update(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, q)
	})
	assert.Less(t, taken, uint64(20<<20), "compiled again, they take 800 MiB")
}

// Shows: hub/event-bounded
func TestAStatusOfOneClusterEvaluatesNoMoreThanThereIsTimeFor(t *testing.T) {
	m := &memory{}
	ten := "[1,2,3,4,5,6,7,8,9,10]"
	text := ten + ".all(a," + ten + ".all(b," + ten + ".all(c,a+b+c>0)))&&managedCluster.metadata.name=='y'"
	const all = 200
	for i := range all {
		observer(m, fmt.Sprint("p", i), where(byCEL(text).RequiredClusterSelector), setGlobal)
	}
	older, newer := reported(m)
	asked := all - len(m.concernedBy(older, newer))
	assert.Positive(t, asked)
	assert.LessOrEqual(t, asked, maxEventCost/5_000, "each costs more than 5,000 units; the others are decided again")
	newer.Name, newer.ResourceVersion = "y", "3"
	assert.Len(t, m.concernedBy(older, newer), all, "what could not be evaluated counts as a change")
	matching := m.those(func(in interest) (string, bool) { return "", in.judge(newer).matches })
	assert.Len(t, matching, all, "a pass evaluates what the event could not")
}
