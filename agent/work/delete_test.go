package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		uid  string
		live *metav1.ObjectMeta
		want verdict
	}{
		"gone":                                     {"live", nil, verdictForget},
		"not ours any more":                        {"live", live("", false, other), verdictForget},
		"ours and somebody's":                      {"live", live("", false, mine, other), verdictDisown},
		"ours and somebody's, made anew":           {"was", live("", false, mine, other), verdictDisown},
		"ours, made anew by somebody":              {"was", live("", false, mine), verdictForget},
		"ours and going":                           {"live", live("", true, mine), verdictWait},
		"ours":                                     {"live", live("", false, mine), verdictDelete},
		"a foreign owner does not protect":         {"live", live("", false, mine, foreign), verdictDelete},
		"an intent that was carried out":           {"", live("", false, mine), verdictDelete},
		"an intent that somebody else carried out": {"", live("", false), verdictForget},
		"an intent that is going":                  {"", live("", true, mine), verdictWait},
	} {
		t.Run(name, func(t *testing.T) {
			entry := workv1.AppliedManifestResourceMeta{UID: c.uid}
			if c.live == nil {
				assert.Equal(t, c.want, judge(entry, "mine", nil))
				return
			}
			assert.Equal(t, c.want, judge(entry, "mine", c.live))
		})
	}
}

func TestNextLook(t *testing.T) {
	assert.Equal(t, epoch.Add(firstLook), nextLook(epoch, epoch))
	assert.Equal(t, epoch.Add(30*time.Second), nextLook(epoch, epoch.Add(10*time.Second)))
	assert.Equal(t, epoch.Add(24*time.Hour+lastLook), nextLook(epoch, epoch.Add(24*time.Hour)))
	assert.Equal(t, epoch.Add(firstLook), nextLook(epoch.Add(time.Hour), epoch), "clocks may differ")
}
