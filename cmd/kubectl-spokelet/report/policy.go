package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/policies"
)

// Policy is what the AddOnPolicy of an add-on says, and what follows of it.
type Policy struct {
	AddOn string `json:"addOn"`
	// Seen reports whether a hub manager has seen it as it is: it is in force then.
	Seen bool `json:"seen"`
	// Paused reports whether no cluster begins to change, and Reason says why.
	Paused bool   `json:"paused"`
	Reason string `json:"reason,omitempty"`
	// Approval is what has to be approved.
	Approval policies.Approval `json:"approval,omitempty"`
	// Waiting is how many clusters wait because of the policy or a window, and Contents what for.
	Waiting  int32              `json:"waiting"`
	Contents []policies.Content `json:"contents,omitempty"`
	// Unused are approvals that are of no use now, and Undone the contents that were undone.
	Unused []string          `json:"unused,omitempty"`
	Undone []policies.Undone `json:"undone,omitempty"`
	// DependsOn are the add-ons that come before it.
	DependsOn []policies.Dependency `json:"dependsOn,omitempty"`
	// OnFailure says what becomes of clusters that fail; nil for nothing.
	OnFailure *policies.OnFailure `json:"onFailure,omitempty"`
	// Removals says when it goes from clusters that no placement selects.
	Removals policies.Removals `json:"removals,omitempty"`
	// Problem is what the hub manager cannot follow in it, and Placements has those where an undo does not happen.
	Problem    string                  `json:"problem,omitempty"`
	Placements []fleet.PolicyPlacement `json:"placements,omitempty"`
}

// PolicyOf returns what a policy says; nil for none.
func PolicyOf(p *fleet.Policy) *Policy {
	if p == nil {
		return nil
	}
	of := &Policy{
		AddOn: p.Metadata.Name, Seen: p.Status.ObservedGeneration >= p.Metadata.Generation && p.Status.ObservedGeneration > 0,
		Approval: cmp.Or(p.Spec.Approval, policies.ApprovalNone), Waiting: p.Status.Waiting, Contents: p.Status.Contents,
		Unused: p.Status.Unused, Undone: p.Status.Undone, DependsOn: p.Spec.DependsOn, OnFailure: p.Spec.OnFailure,
		Removals: p.Spec.Removals, Problem: p.Status.Problem,
	}
	for _, at := range p.Status.Placements {
		if at.Problem != "" {
			of.Placements = append(of.Placements, at)
		}
	}
	if p.Spec.Paused != nil {
		of.Paused, of.Reason = true, p.Spec.Paused.Reason
	}
	return of
}

// Saying is one sentence about a policy, with what to do next; empty for nothing.
type Saying struct {
	// What is a word for what it is about.
	What  string
	State State
	Text  string
	Next  string
}

// unseen is said of a policy or a window that no hub manager has seen as it is.
const unseen = "no hub manager has seen it as it is, so it is not in force yet"

// Sayings are the sentences about a policy, what keeps clusters from changing first.
func (p *Policy) Sayings(now time.Time) []Saying {
	var all []Saying
	say := func(what string, state State, text, next string) {
		all = append(all, Saying{What: what, State: state, Text: text, Next: next})
	}
	if !p.Seen {
		say("in force", Warning, unseen, "")
	}
	if p.Problem != "" {
		say("problem", Failed, p.Problem, "")
	}
	if p.Paused {
		text := "paused, so no cluster begins to change"
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		say("pause", Warning, text, p.command("kubectl spokelet rollout resume addon ADDON", ""))
	}
	for _, c := range p.Contents {
		all = append(all, p.ofContent(c))
	}
	for i := range p.Undone {
		all = append(all, p.ofUndone(&p.Undone[i], now))
	}
	for _, at := range p.Placements {
		where := "placement " + at.Placement
		if at.Placement == policies.NoPlacement {
			where = "clusters of no placement"
		}
		say("undo", Warning, where+": "+at.Problem, "")
	}
	for _, d := range p.DependsOn {
		say("order", OK, after(d), "")
	}
	if f := p.OnFailure; f != nil && f.Action != "" && f.Action != policies.ActionStop {
		say("failures", OK, fmt.Sprintf("onFailure is %s, after %s", f.Action, lasting(f.After.Duration)), "")
	}
	if p.Removals == policies.RemovalsInWindows {
		say("removals", OK, "removals from clusters that no placement selects any more wait for their windows", "")
	}
	for _, name := range p.Unused {
		say("approval", Warning, "approval "+name+" is of nothing that a cluster is to get now, and counts again when that "+
			"comes back", "")
	}
	return all
}

// ofUndone says that a content was undone. Where no cluster is kept from it, that is remembered for when it comes back.
func (p *Policy) ofUndone(u *policies.Undone, now time.Time) Saying {
	text := fmt.Sprintf("content %s%s was undone", u.Content, listed(u.Configurations))
	switch u.By {
	case policies.ByPolicy:
		text += " by the policy"
	case policies.ByPerson:
		text += " by a person"
	}
	if at := fleet.Known(u.Since.Time); !at.IsZero() {
		text += " " + duration.HumanDuration(max(now.Sub(at), 0)) + " ago"
	}
	s := Saying{What: "undone", State: OK}
	if u.Clusters > 0 {
		s.State, s.Next = Failed, p.command("kubectl spokelet rollout retry addon ADDON", "")
		text += ", and " + Count(int(u.Clusters), "cluster") + " kept from it"
	} else {
		text += ", and no cluster is to get it now, which is remembered for when one is"
	}
	if u.Why != "" {
		text += ": " + u.Why
	}
	s.Text = text
	return s
}

// after says what an add-on comes after.
func after(d policies.Dependency) string {
	text := fmt.Sprintf("comes after add-on %s, whose condition %s has to be True", d.Name,
		cmp.Or(d.Condition, "Available"))
	if d.Type == policies.DependencyOptional {
		text += ", where the cluster has it"
	}
	return text
}

// ofContent says who waits for a content, or a wave of it.
func (p *Policy) ofContent(c policies.Content) Saying {
	text := fmt.Sprintf("%s for content %s%s", WaitsFor(int(c.Clusters)), c.Name, listed(c.Configurations))
	s := Saying{What: "content", State: Waiting, Text: text}
	if c.Wave != "" {
		s.Text += " in " + c.Wave
	}
	switch asked := p.Approval != policies.ApprovalNone; {
	case asked && c.Approved:
		s.Text += ", which is approved"
	case asked && c.Wave != "" && !c.Turn:
		s.Text += ", which is not approved, and has not its turn yet"
	case asked:
		s.State, s.Text = Warning, s.Text+", which is not approved"
		if c.Wave == "" && p.Approval == policies.ApprovalPerWave {
			s.Text += ": to approve it is to approve all its waves"
		}
		s.Next = p.command("kubectl spokelet rollout approve addon ADDON --content CONTENT", c.Name)
	}
	return s
}

// command puts the names of the add-on and of a content into a command.
func (p *Policy) command(text, content string) string {
	return Command("addonpolicy", text, "ADDON", p.AddOn, "CONTENT", content)
}

// WaitsFor is how many clusters wait.
func WaitsFor(clusters int) string {
	if clusters == 1 {
		return "1 cluster waits"
	}
	return Count(clusters, "cluster") + " wait"
}

// listed names configurations; "" for none.
func listed(configurations []string) string {
	if len(configurations) == 0 {
		return ""
	}
	return " (" + strings.Join(configurations, ", ") + ")"
}

// Window is a MaintenanceWindow.
type Window struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Schedule string `json:"schedule"`
	Duration string `json:"duration"`
	// Zone is the time zone of its clock, or the claim that names it.
	Zone string `json:"zone"`
	// AddOns are those that it is for; none means all.
	AddOns []string `json:"addOns,omitempty"`
	Active bool     `json:"active"`
	// Next is when it begins next, and Until when no occurrence begins any more; nil for never.
	Next  *time.Time `json:"nextStart,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// Clusters is how many clusters it selects.
	Clusters int `json:"clusters"`
	// Problem is why it cannot be used.
	Problem string `json:"problem,omitempty"`
}

// WindowsOf returns windows by name: those for an add-on, or all for an empty one.
func WindowsOf(all []fleet.Window, addOn string) []Window {
	var found []Window
	for i := range all {
		if w := &all[i]; addOn == "" || w.Spec.IsFor(addOn) {
			found = append(found, windowOf(w))
		}
	}
	slices.SortFunc(found, func(a, b Window) int { return strings.Compare(a.Name, b.Name) })
	return found
}

func windowOf(w *fleet.Window) Window {
	of := Window{
		Name: w.Metadata.Name, Kind: w.Spec.Kind, Schedule: w.Spec.Schedule, Zone: cmp.Or(w.Spec.TimeZone, "UTC"),
		Duration: lasting(w.Spec.Duration.Duration), AddOns: w.Spec.AddOns, Active: w.Status.Active,
		Clusters: int(w.Status.Clusters), Problem: w.Status.Problem,
	}
	if claim := w.Spec.TimeZoneClaim; claim != "" {
		of.Zone = "claim " + claim
	}
	if at := w.Status.NextStart; at != nil {
		of.Next = fleet.Instant(at.Time)
	}
	if at := w.Spec.Until; at != nil {
		of.Until = fleet.Instant(at.Time)
	}
	switch {
	case w.Metadata.Deleting():
		of.Problem = "it is being deleted, and holds nobody any more"
	case of.Problem == "" && w.Status.ObservedGeneration < max(w.Metadata.Generation, 1):
		of.Problem = unseen
	}
	return of
}

// lasting writes a duration without parts that are zero.
func lasting(d time.Duration) string {
	text := d.String()
	if rest, is := strings.CutSuffix(text, "m0s"); is {
		text = rest + "m"
	}
	if rest, is := strings.CutSuffix(text, "h0m"); is {
		text = rest + "h"
	}
	return text
}
