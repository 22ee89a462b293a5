package issue

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
)

// clockPeriod is how long a clock that is wrong is believed to be so, and dueClockPeriod how long where the clock of
// the agent says that a credential is due, and that of the hub does not. What stands before the hub may answer with a
// date of its own for a while, and a credential lives for ten minutes at least.
const clockPeriod, dueClockPeriod = 5 * time.Minute, 15 * time.Second

func isOff(ahead time.Duration) bool { return ahead.Abs() >= time.Minute }

// LookAtClock returns when to judge again what is to be done at wake, all by the clock of the hub: soon where that
// differs from the one of the agent by a minute or more, because people set clocks right and nothing tells when, and as
// soon as the clock of the agent shows wake. It is zero otherwise. A wake of zero is never.
func LookAtClock(ahead time.Duration, now, wake time.Time) time.Time {
	if !isOff(ahead) {
		return time.Time{}
	}
	look := now.Add(clockPeriod)
	if wake.IsZero() || !now.Before(wake) {
		return look
	}
	due := wake.Add(-ahead) // when the clock of the agent shows wake
	if !due.After(now) {
		due = now.Add(dueClockPeriod)
	}
	if due.Before(look) {
		return due
	}
	return look
}

// WithClockNote returns the condition with a note about the clock of the agent, if that is wrong by a minute or more.
func WithClockNote(c *metav1.Condition, ahead time.Duration) *metav1.Condition {
	if c == nil || !isOff(ahead) {
		return c
	}
	off := ahead.Abs()
	if off = off.Round(time.Minute); off > 2*time.Hour {
		off = off.Round(time.Hour) // it need not be written again for each minute that a clock drifts
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	noted := *c
	noted.Message += fmt.Sprintf("; the clock of the agent is about %s %s the clock of the hub: set it right",
		off, direction)
	return &noted
}

// Rotated returns the condition for a good pair.
func Rotated(v PairVerdict) *metav1.Condition {
	return &metav1.Condition{
		Type: csr.ConditionRotated, Status: metav1.ConditionTrue, Reason: ReasonUpdated,
		Message: fmt.Sprintf(messageRotated, v.NotBefore.UTC(), v.NotAfter.UTC()),
	}
}

// NotStored returns the condition for a certificate that was issued but could not be stored, why for people.
func NotStored(why string) *metav1.Condition { return failed(messageFailed, why) }

func failed(format string, args ...any) *metav1.Condition {
	return &metav1.Condition{
		Type: csr.ConditionRotated, Status: metav1.ConditionFalse, Reason: ReasonUpdateFailed,
		Message: fmt.Sprintf(format, args...),
	}
}
