package prune

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// epoch is an instant.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Shows: work/deletion-decided, work/hub-hash
func TestDecide(t *testing.T) {
	mine, other := inventory.OwnerReference("w", "mine"), inventory.OwnerReference("v", "other")
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "x"}
	live := func(uid string, deleting bool, refs ...metav1.OwnerReference) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{OwnerReferences: refs}
		m.UID = "live"
		if uid != "" {
			m.UID = "other"
		}
		if deleting {
			m.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		return m
	}
	for name, c := range map[string]struct {
		uid      string
		live     *metav1.ObjectMeta
		want     verb
		orphaned bool
		// applied are the objects of this pass.
		applied map[types.UID]bool
	}{
		"gone":                                     {uid: "live", want: verbDrop},
		"not ours any more":                        {uid: "live", live: live("", false, other), want: verbDrop},
		"ours and somebody's":                      {uid: "live", live: live("", false, mine, other), want: verbOrphan},
		"ours and somebody's, made again":          {uid: "was", live: live("", false, mine, other), want: verbOrphan},
		"ours, made again by somebody":             {uid: "was", live: live("", false, mine), want: verbDrop},
		"ours and going":                           {uid: "live", live: live("", true, mine), want: verbWait},
		"ours":                                     {uid: "live", live: live("", false, mine), want: verbDelete},
		"a foreign owner does not protect":         {uid: "live", live: live("", false, mine, foreign), want: verbDelete},
		"an intent that was carried out":           {uid: "", live: live("", false, mine), want: verbDelete},
		"an intent that somebody else carried out": {uid: "", live: live("", false), want: verbDrop},
		"an intent that is going":                  {uid: "", live: live("", true, mine), want: verbWait},
		"ours, orphaned as it is deleted":          {uid: "live", live: live("", false, mine), want: verbOrphan, orphaned: true},
		"orphaned before it is deleted":            {uid: "live", live: live("", false), want: verbDrop, orphaned: true},
		"ours, and applied under another group": {
			uid: "live", live: live("", false, mine), want: verbDrop, applied: map[types.UID]bool{"live": true},
		},
		"an intent that is applied under another group": {
			live: live("", false, mine), want: verbDrop, applied: map[types.UID]bool{"live": true},
		},
		"ours and somebody's, and applied under another group": {
			uid: "live", live: live("", false, mine, other), want: verbDrop, applied: map[types.UID]bool{"live": true},
		},
		"ours, while another one was applied": {
			uid: "live", live: live("", false, mine), want: verbDelete, applied: map[types.UID]bool{"another": true},
		},
		"orphaned and gone": {uid: "live", want: verbDrop, orphaned: true},
	} {
		t.Run(name, func(t *testing.T) {
			entry := workv1.AppliedManifestResourceMeta{UID: c.uid}
			r := Request{UID: "mine", Applied: c.applied, Orphaned: func(manifest.ID) bool { return c.orphaned }}
			if c.live == nil {
				assert.Equal(t, c.want, r.decide(entry, nil))
				return
			}
			assert.Equal(t, c.want, r.decide(entry, c.live))
		})
	}
}

func TestNextCheck(t *testing.T) {
	assert.Equal(t, epoch.Add(firstCheck), nextCheck(epoch, epoch))
	assert.Equal(t, epoch.Add(30*time.Second), nextCheck(epoch, epoch.Add(10*time.Second)))
	assert.Equal(t, epoch.Add(24*time.Hour+lastCheck), nextCheck(epoch, epoch.Add(24*time.Hour)))
	assert.Equal(t, epoch.Add(40*time.Second), nextCheck(epoch.Add(40*time.Second), epoch), "the end of a grace")
	assert.Equal(t, epoch.Add(lastCheck), nextCheck(epoch.Add(time.Hour), epoch), "there may be no watch")
	assert.Equal(t, epoch.Add(55*time.Second), nextCheck(epoch.Add(40*time.Second), epoch.Add(45*time.Second)),
		"past its grace it is looked at as anything else")
}

// Shows: work/deletion-clock
func TestSinceWhenAnObjectShouldHaveGone(t *testing.T) {
	requested := &watch.Deletion{Requested: true, Since: epoch.Add(-time.Minute)}
	for sentence, c := range map[string]struct {
		known *watch.Deletion
		stamp time.Duration
		grace int64
		want  time.Duration
	}{
		"what this process requested is by its clock":     {requested, time.Hour, 0, -time.Minute},
		"whatever the clock of the API server says":       {requested, -time.Hour, 0, -time.Minute},
		"what another one requested is by the API server": {nil, -time.Hour, 0, -time.Hour},
		"but never later than now":                        {nil, time.Hour, 0, 0},
		"or than the grace period from now":               {nil, time.Hour, 30, 30 * time.Second},
		"a grace period that runs":                        {nil, 10 * time.Second, 30, 10 * time.Second},
		"a request that failed says nothing":              {&watch.Deletion{Since: epoch}, -time.Minute, 0, -time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			live, stamp := &metav1.ObjectMeta{DeletionGracePeriodSeconds: &c.grace}, metav1.NewTime(epoch.Add(c.stamp))
			live.DeletionTimestamp = &stamp
			assert.True(t, goingSince(c.known, live, epoch).Equal(epoch.Add(c.want)))
		})
	}
}
