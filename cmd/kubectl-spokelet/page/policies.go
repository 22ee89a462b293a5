package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// maxWindows is how many windows a view shows, and maxSayings and fewSayings how many sentences about a policy, on its
// own page and among others.
const maxWindows, maxSayings, fewSayings = 12, 40, 3

// ruled is the policy of an add-on as it is shown.
type ruled struct {
	*report.Policy

	Said []report.Saying
	// More is how many sentences are left out.
	More int
}

func ruledBy(p *report.Policy, most int, now time.Time) *ruled {
	if p == nil {
		return nil
	}
	all := p.Sayings(now)
	return &ruled{Policy: p, Said: all[:min(len(all), most)], More: max(len(all)-most, 0)}
}

// windows are windows as they are shown: those that cannot be used first, then those that are active, then by when they
// begin.
type windows struct {
	Items []report.Window
	More  int
}

func shownWindows(all []report.Window) windows {
	rank := func(w report.Window) int {
		switch {
		case w.Problem != "":
			return 0
		case w.Active:
			return 1
		case w.Next != nil:
			return 2
		}
		return 3
	}
	begins := func(w report.Window) int64 {
		if w.Next == nil {
			return 0
		}
		return w.Next.Unix()
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b report.Window) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(begins(a), begins(b)))
	})
	return windows{Items: all[:min(len(all), maxWindows)], More: max(len(all)-maxWindows, 0)}
}
