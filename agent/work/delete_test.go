package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Row: work 6.1 FC TestFinalize
// Row: work 6.1 HP tests
func TestJudge(t *testing.T) {
	mine, other := ownerReference("w", "mine"), ownerReference("v", "other")
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
		uid    string
		live   *metav1.ObjectMeta
		want   verdict
		spared bool
		// applied are the objects of this pass.
		applied map[types.UID]bool
	}{
		"gone":                                     {uid: "live", want: verdictForget},
		"not ours any more":                        {uid: "live", live: live("", false, other), want: verdictForget},
		"ours and somebody's":                      {uid: "live", live: live("", false, mine, other), want: verdictDisown},
		"ours and somebody's, made anew":           {uid: "was", live: live("", false, mine, other), want: verdictDisown},
		"ours, made anew by somebody":              {uid: "was", live: live("", false, mine), want: verdictForget},
		"ours and going":                           {uid: "live", live: live("", true, mine), want: verdictWait},
		"ours":                                     {uid: "live", live: live("", false, mine), want: verdictDelete},
		"a foreign owner does not protect":         {uid: "live", live: live("", false, mine, foreign), want: verdictDelete},
		"an intent that was carried out":           {uid: "", live: live("", false, mine), want: verdictDelete},
		"an intent that somebody else carried out": {uid: "", live: live("", false), want: verdictForget},
		"an intent that is going":                  {uid: "", live: live("", true, mine), want: verdictWait},
		"ours, orphaned as it is deleted":          {uid: "live", live: live("", false, mine), want: verdictDisown, spared: true},
		"orphaned before it is deleted":            {uid: "live", live: live("", false), want: verdictForget, spared: true},
		"ours, and applied under another group": {
			uid: "live", live: live("", false, mine), want: verdictForget, applied: map[types.UID]bool{"live": true},
		},
		"an intent that is applied under another group": {
			live: live("", false, mine), want: verdictForget, applied: map[types.UID]bool{"live": true},
		},
		"ours and somebody's, and applied under another group": {
			uid: "live", live: live("", false, mine, other), want: verdictForget, applied: map[types.UID]bool{"live": true},
		},
		"ours, while another one was applied": {
			uid: "live", live: live("", false, mine), want: verdictDelete, applied: map[types.UID]bool{"another": true},
		},
		"orphaned and gone": {uid: "live", want: verdictForget, spared: true},
	} {
		t.Run(name, func(t *testing.T) {
			entry := workv1.AppliedManifestResourceMeta{UID: c.uid}
			if c.live == nil {
				assert.Equal(t, c.want, judge(entry, "mine", nil, c.spared, c.applied))
				return
			}
			assert.Equal(t, c.want, judge(entry, "mine", c.live, c.spared, c.applied))
		})
	}
}

func TestNextLook(t *testing.T) {
	assert.Equal(t, epoch.Add(firstLook), nextLook(epoch, 0, epoch))
	assert.Equal(t, epoch.Add(30*time.Second), nextLook(epoch, 0, epoch.Add(10*time.Second)))
	assert.Equal(t, epoch.Add(24*time.Hour+lastLook), nextLook(epoch, 0, epoch.Add(24*time.Hour)))
	assert.Equal(t, epoch.Add(firstLook), nextLook(epoch.Add(time.Hour), 0, epoch), "clocks may differ")
	assert.Equal(t, epoch.Add(40*time.Second), nextLook(epoch.Add(40*time.Second), 40*time.Second, epoch), "the end of a grace")
	assert.Equal(t, epoch.Add(30*time.Second), nextLook(epoch.Add(time.Hour), 30*time.Second, epoch),
		"a grace is no longer than it is, whatever the clocks are")
	assert.Equal(t, epoch.Add(lastLook), nextLook(epoch.Add(time.Hour), time.Hour, epoch), "there may be no watch")
	assert.Equal(t, epoch.Add(55*time.Second), nextLook(epoch.Add(40*time.Second), 40*time.Second, epoch.Add(45*time.Second)),
		"past its grace it is looked at as anything else")
}
