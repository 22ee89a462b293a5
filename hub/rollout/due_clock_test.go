package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAClockThatIsAheadWhileNobodyIsAdmittedTimesNobodyOut, and cluster a had been complete before its add-on was
// created again. Its user does that again each quarter of an hour. It has one deadline of 20 minutes.
func TestAClockThatWasAheadWhileNobodyIsAdmittedGivesNoDay(t *testing.T) {
	for sentence, ahead := range map[string]time.Duration{"control: the clock is right": 0, "the clock was a day ahead": 24 * time.Hour} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon(), soak: 10 * time.Minute, failures: intstr.FromString("100%")}, fixture.AddOn("b")
			require.Equal(t, []string{"a"}, r.minute(ownA("first", false), b))
			r.minute(ownFlies("first", false, "", r.now), b)
			complete := r.now
			for range 2 {
				r.minute(ownDone(false, complete), b)
			}
			r.incomplete = assert.AnError
			r.minute(ownA("second", false), b)
			r.now = r.now.Add(ahead)
			r.minute(ownA("second", false), b)
			r.now, r.incomplete = r.now.Add(-ahead), nil
			began, number := r.now, 2
			var a *addonv1beta1.ManagedClusterAddOn
			for r.now.Before(began.Add(6 * time.Hour)) {
				uid := fmt.Sprint(number)
				number++
				a = ownA(uid, false)
				admitted := r.minute(a, b)
				for flies := range 15 {
					if len(admitted) > 0 && admitted[0] == "b" {
						assert.Less(t, r.now.Sub(began), 2*time.Hour, "b waits for a beyond 2*20 and 10 minutes")
						return
					}
					admitted = r.minute(ownFlies(uid, false, "", r.now.Add(-time.Duration(flies)*time.Minute)), b)
				}
			}
			t.Fatalf("b waits for a for %s, of 2*20 and 10 minutes", r.now.Sub(began))
		})
	}
}
