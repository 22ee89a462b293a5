package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// A watch that was cut off shows that a cluster was away and is back, while a pass looks at it: the pass overwrites that.
func TestAnAbsenceThatIsNotedDuringAPassIsNotForgotten(t *testing.T) {
	m := &memory{}
	m.begin("hello")
	m.note(types.NamespacedName{Namespace: "c1", Name: "hello"}, noon())
	was := clusterThat(metav1.ConditionTrue, noon().Add(-time.Hour))
	was.Name = "c1"
	m.see(nil, was, noon())
	read := m.unselected("hello")["c1"] // the pass begins: candidates()
	is := was.DeepCopy()
	for i := range is.Status.Conditions {
		if is.Status.Conditions[i].Type == clusterv1.ManagedClusterConditionAvailable {
			is.Status.Conditions[i].LastTransitionTime = metav1.NewTime(noon().Add(time.Second))
		}
	}
	m.see(was, is, noon().Add(2*time.Second))
	require.True(t, m.unselected("hello")["c1"].away, "it was noted")
	read.reach, read.apart = 7, noon() // what the pass found out
	m.learn(types.NamespacedName{Namespace: "c1", Name: "hello"}, read)
	assert.True(t, m.unselected("hello")["c1"].away, "the pass overwrote the note")
}
