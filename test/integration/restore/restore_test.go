package restore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestAHubThatComesBackOlderTakesNothing restores the hub to what it was before works were made, edited and deleted, a
// cluster was accepted, and a certificate was renewed.
//
// Shows: work/missing-held, work/missing-confirmed, work/older-held, invariants/older-hub
func TestAHubThatComesBackOlderTakesNothing(t *testing.T) {
	early := join(t, "early")
	early.deploy("before")
	early.deploy("deleted-since")
	early.deploy("edited")
	early.deploy("edited-too")
	uids := map[string]string{"before": early.applied("before")}
	for _, name := range []string{"deleted-since", "edited", "edited-too"} {
		early.applied(name)
	}
	former := early.credential()
	require.NoError(t, hub.BackUp(t.Context()))

	// All this is lost.
	late := join(t, "late")
	made := []string{"made-a", "made-b", "made-c", "made-d", "made-e"}
	for _, name := range made {
		early.deploy(name)
	}
	for _, name := range made {
		uids[name] = early.applied(name)
	}
	for _, name := range []string{"edited", "edited-too"} {
		more, uid := early.grow(name)
		uids[more] = uid
	}
	late.deploy("late-a")
	late.deploy("late-b")
	lateUIDs := map[string]string{"late-a": late.applied("late-a"), "late-b": late.applied("late-b")}
	require.NoError(t, hub.Client.Delete(t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: early.name, Name: "deleted-since"},
	}))
	early.eventually("the object goes with its work", func() bool { return early.object("deleted-since") == "" })
	early.renew()
	require.NotEqual(t, former, early.credential())
	credentials := []string{early.credential(), late.credential()}
	outrun(t)
	require.NoError(t, hub.Restore(t.Context()))

	// The works of the cluster that the hub knows are missing, and everything says so.
	early.eventually("the ManagedCluster names them", func() bool {
		c := early.condition()
		return c != nil && c.Status == metav1.ConditionFalse && regexp.MustCompile(
			`5 of the \d+ works .* made-a, made-b, made-c, made-d, made-e`).MatchString(c.Message)
	})
	early.eventually("and those that are older than what was applied", func() bool {
		c := early.condition()
		return c != nil && regexp.MustCompile(`older content of 2 works .*: edited, edited-too\.`).MatchString(c.Message)
	})
	early.eventually("so does the agent", func() bool {
		return regexp.MustCompile(`(?s)200 OK.*\[!\]works the hub does not have 5 of .* made-e`).MatchString(early.says())
	})
	assert.Contains(t, early.program.Log.String(), "made-a, made-b, made-c, made-d, made-e")
	early.eventually("what was deleted is there again, as the hub says", func() bool {
		return early.object("deleted-since") != ""
	})
	// The hub does not know the other cluster, whose agent has no rights there.
	var none clusterv1.ManagedCluster
	require.Error(t, hub.Client.Get(t.Context(), client.ObjectKey{Name: late.name}, &none))
	late.eventually("it says so", func() bool {
		return regexp.MustCompile(`\[!\]heartbeat the hub does not take .* forbidden`).MatchString(late.says())
	})
	suite.Consistently(t, 10*time.Second, func() error {
		for name, uid := range uids {
			if early.object(name) != uid {
				return fmt.Errorf("the object of %s was touched", name)
			}
		}
		for name, uid := range lateUIDs {
			if late.object(name) != uid {
				return fmt.Errorf("the object of %s was touched", name)
			}
		}
		return nil
	})
	kept := []string{early.credential(), late.credential()}
	assert.Equal(t, credentials, kept, "no credential is lost")

	early.program.Restart()
	early.eventually("an agent that starts anew knows it, too", func() bool {
		return regexp.MustCompile(`5 of the \d+ works`).MatchString(early.says())
	})
	early.writeAgain("edited", uids)
	early.confirm(made, uids)
	early.eventually("so does what an older content does not have", func() bool {
		return early.object("edited-too-more") == ""
	})
	assert.NotEmpty(t, early.object("edited-too"))
	assert.Equal(t, uids["edited-more"], early.object("edited-more"))
	late.acceptAgain(lateUIDs)
}

// renew has the agent get a new certificate.
func (m *member) renew() {
	m.Helper()
	former := m.credential()
	m.program.Stop()
	require.NoError(m, managed.Client.Delete(m.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: m.config.HubSecret},
	}))
	m.program.Start()
	m.eventually("there is a new certificate", func() bool {
		_, err := suite.AdmitOnce(m.Context(), hub, m.name)
		return err == nil && m.credential() != "" && m.credential() != former
	})
	m.eventually("the agent serves with it", func() bool {
		return regexp.MustCompile(`\[\+\]agent serving`).MatchString(m.says())
	})
}

// outrun makes the hub's versions run so far ahead that it does not reach them by itself after it was restored.
func outrun(t *testing.T) {
	t.Helper()
	busy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "busy"}}
	require.NoError(t, hub.Client.Create(t.Context(), busy))
	for i := range 3000 {
		busy.Data = map[string]string{"k": strconv.Itoa(i)}
		require.NoError(t, hub.Client.Update(t.Context(), busy))
	}
}

// given waits until the ManagedCluster says how to confirm that so many works are gone, and returns the value for it.
func (m *member) given(works int) (value string) {
	m.Helper()
	m.eventually("the ManagedCluster says how to confirm", func() bool {
		c := m.condition()
		if c == nil || !regexp.MustCompile(fmt.Sprintf(`does not have %d of`, works)).MatchString(c.Message) {
			return false
		}
		if given := regexp.MustCompile(names.AnnotationConfirmEviction + `=(\w+)`).FindStringSubmatch(c.Message); given != nil {
			value = given[1]
		}
		return value != ""
	})
	return value
}

// confirmsNothing waits until the agent saw a value that confirms nothing, and that the objects stay.
func (m *member) confirmsNothing(value string, works []string, uids map[string]string) {
	m.Helper()
	m.annotate(names.AnnotationConfirmEviction, value)
	m.eventually("the agent says that it is about other works", func() bool {
		return strings.Contains(m.says(), fmt.Sprintf("%q was for other works", value))
	})
	suite.Consistently(m, 10*time.Second, func() error {
		for _, name := range works {
			if m.object(name) != uids[name] {
				return fmt.Errorf("%s confirmed the eviction of %s", value, name)
			}
		}
		return nil
	})
}

// writeAgain writes the newer content of a work again.
func (m *member) writeAgain(name string, uids map[string]string) {
	m.Helper()
	more, uid := m.grow(name)
	assert.Equal(m, uids[more], uid, "the work takes its object over")
	m.eventually("the work holds nothing more", func() bool {
		r, c := m.record(name), m.condition()
		return r != nil && !inventory.IsOlder(r) && c != nil &&
			regexp.MustCompile(`older content of 1 works .*: edited-too\.`).MatchString(c.Message)
	})
}

// confirm has one work come back, and the others confirmed to be gone.
func (m *member) confirm(made []string, uids map[string]string) {
	m.Helper()
	back, gone := made[0], made[1:]
	former := m.given(len(made))
	// It passes while the test looks.
	m.confirmsNothing(time.Now().Add(5*time.Second).UTC().Format(time.RFC3339), made, uids)
	m.deploy(back)
	assert.Equal(m, uids[back], m.applied(back), "the work takes its object over")
	m.eventually("it is held no more", func() bool {
		r := m.record(back)
		return r != nil && !inventory.IsHeld(r) && r.Status.EvictionStartTime == nil
	})
	given := m.given(len(gone))
	m.confirmsNothing(former, gone, uids)
	m.annotate(names.AnnotationConfirmEviction, given)
	for _, name := range gone {
		m.eventually("the object of "+name+" goes", func() bool { return m.object(name) == "" && m.record(name) == nil })
	}
	m.eventually("the ManagedCluster says that nothing is missing", func() bool {
		c := m.condition()
		return c != nil && c.Status == metav1.ConditionTrue
	})
	m.eventually("so does the agent", func() bool { return !strings.Contains(m.says(), "[!]works") })
	for _, name := range []string{"before", back} {
		assert.Equal(m, uids[name], m.object(name))
	}
}

// acceptAgain does what a person does about a cluster that the hub does not know any more: it is created and accepted,
// which takes a hub manager that noticed that the hub is older; then its works come back.
func (m *member) acceptAgain(uids map[string]string) {
	m.Helper()
	certificate := m.credential()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	cluster.Spec.HubAcceptsClient = true
	require.NoError(m, hub.Client.Create(m.Context(), cluster))
	m.eventually("its works are missing", func() bool {
		c := m.condition()
		return c != nil && regexp.MustCompile(`2 of the 2 works .* late-a, late-b`).MatchString(c.Message)
	})
	for name, uid := range uids {
		m.deploy(name)
		assert.Equal(m, uid, m.applied(name))
	}
	m.eventually("nothing is missing", func() bool {
		c := m.condition()
		return c != nil && c.Status == metav1.ConditionTrue
	})
	assert.Equal(m, certificate, m.credential(), "with the credential that it had")
}
