package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
)

// undo returns the command that gives clusters their former content back.
func (p *Plugin) undo() *cobra.Command {
	return p.rulesContent(undoing, cobra.Command{
		Use: "undo addon NAME", Short: "Give clusters their former content back",
		Long: "undo adds a content to spec.undo of the AddOnPolicy of the add-on, and takes it out of spec.retry and " +
			"spec.approved. All clusters return from it to the last content that completed, in the turns of their strategy, " +
			"and it is not rolled out while it is there. It undoes what all placements ask for, or the content that --content " +
			"names.",
		Example: "  kubectl spokelet rollout undo addon logs --dry-run",
	})
}

// retry returns the command that rolls out again what was undone.
func (p *Plugin) retry() *cobra.Command {
	return p.rulesContent(retrying, cobra.Command{
		Use: "retry addon NAME", Short: "Roll out again what was undone",
		Long: "retry adds a content to spec.retry of the AddOnPolicy of the add-on, and takes it out of spec.undo. It is " +
			"rolled out again, and the hub manager does not undo it another time. It tries the only content again that was " +
			"undone, or the one that --content names.",
		Example: "  kubectl spokelet rollout retry addon logs --dry-run",
	})
}

// rulesContent completes a command that writes a content into the policy of an add-on.
func (p *Plugin) rulesContent(
	decide func(name string, policy *policies.AddOnPolicy, content string) (sentence, error), c cobra.Command,
) *cobra.Command {
	var content string
	command := p.rules(func(name string, policy *policies.AddOnPolicy) (sentence, error) {
		return decide(name, policy, content)
	}, c)
	command.Flags().StringVar(&content, "content", "", "the name of the content, as the status of the policy has it")
	return command
}

// undoing returns the write that undoes a content; an empty one means the only one that placements ask for.
func undoing(name string, policy *policies.AddOnPolicy, content string) (sentence, error) {
	if policy == nil {
		return sentence{}, fmt.Errorf("%w: there is no AddOnPolicy %s, so the hub manager keeps no content to return to; "+
			"give the ClusterManagementAddOn or its template the former content (kubectl spokelet rollout history), and create "+
			"an AddOnPolicy for the next time", errUse, name)
	}
	var asked []string
	for _, placement := range policy.Status.Placements {
		// One without a content does not install the add-on now.
		known := placement.Content == "" || slices.Contains(policy.Spec.Undo, placement.Content)
		if !known && !slices.Contains(asked, placement.Content) {
			asked = append(asked, placement.Content)
		}
	}
	content, err := onlyContent(policy, content, asked,
		"no placement of add-on "+name+" asks for a content that is not undone")
	if err != nil {
		return sentence{}, err
	}
	if slices.Contains(policy.Spec.Undo, content) {
		return sentence{}, fmt.Errorf("%w: content %s of add-on %s is undone already", errUse, content, name)
	}
	edit := policy.Spec
	edit.Undo = append(slices.Clone(edit.Undo), content)
	edit.Retry, edit.Approved = without(edit.Retry, content), without(edit.Approved, content)
	return contentsRuled(policy, edit, "content "+content+" is undone, so "+returning(policy, content)), nil
}

// returning says where the clusters return from a content to.
func returning(policy *policies.AddOnPolicy, content string) string {
	var all []string
	for _, p := range policy.Status.Placements {
		if p.Content != content {
			continue
		}
		to := "keep what they have unless their status knows what they had before"
		for _, c := range p.Completed {
			if c.Content != content && !slices.Contains(policy.Spec.Undo, c.Content) {
				to = "return to content " + message.Cut(c.Content, maxTold)
				break
			}
		}
		of := "placement " + message.Cut(p.Placement, maxTold)
		if p.Placement == policies.NoPlacement {
			of = "no placement"
		}
		all = append(all, "clusters of "+of+" "+to)
	}
	if len(all) == 0 {
		return "it is not rolled out; no placement asks for it now"
	}
	return strings.Join(all, ", ")
}

// retrying returns the write that lets a content be rolled out again; an empty one means the only one that was undone.
func retrying(name string, policy *policies.AddOnPolicy, content string) (sentence, error) {
	if policy == nil {
		return sentence{}, fmt.Errorf("%w: there is no AddOnPolicy %s, so nothing of the add-on was undone", errUse, name)
	}
	undone := slices.Clone(policy.Spec.Undo)
	for _, u := range policy.Status.Undone {
		remembered := u.Clusters == 0 // No cluster is kept from it.
		if !remembered && !slices.Contains(undone, u.Content) && !slices.Contains(policy.Spec.Retry, u.Content) {
			undone = append(undone, u.Content)
		}
	}
	content, err := onlyContent(policy, content, undone, "no content of add-on "+name+" was undone")
	if err != nil {
		return sentence{}, err
	}
	if slices.Contains(policy.Spec.Retry, content) {
		return sentence{}, fmt.Errorf("%w: content %s of add-on %s is tried again already", errUse, content, name)
	}
	edit := policy.Spec
	edit.Undo, edit.Retry = without(edit.Undo, content), append(slices.Clone(edit.Retry), content)
	return contentsRuled(policy, edit, "content "+content+" is rolled out again, and is not undone another time"), nil
}

// onlyContent returns the content that was named, or the only one of those that come into question.
func onlyContent(policy *policies.AddOnPolicy, named string, all []string, none string) (string, error) {
	switch {
	case named != "":
		return named, nil
	case policy.Status.ObservedGeneration != policy.Generation:
		return "", fmt.Errorf("%w: the hub manager has not seen the present AddOnPolicy %s yet; try again", errUse,
			policy.Name)
	case len(all) == 0:
		return "", fmt.Errorf("%w: %s", errUse, none)
	case len(all) > 1:
		return "", fmt.Errorf("%w: there are several contents, name one with --content: %s", errUse, strings.Join(all, ", "))
	}
	return all[0], nil
}

// contentsRuled returns the write of what differs of the lists of contents in the spec of a policy.
func contentsRuled(policy *policies.AddOnPolicy, after policies.AddOnPolicySpec, says string) sentence {
	edit := sentence{
		says: "AddOnPolicy " + policy.Name + ": " + says,
		Edit: fleet.Edit{Resource: addOnPolicies(), Name: policy.Name, Operations: sameUID(policy)},
	}
	if policy.Spec.Approval == "" { // The API server gives every spec one, so there is none.
		edit.Operations = append(edit.Operations, fleet.Operation{Op: "add", Path: "/spec", Value: after})
		return edit
	}
	for _, list := range []struct {
		path    string
		was, is []string
	}{
		{"/spec/undo", policy.Spec.Undo, after.Undo}, {"/spec/retry", policy.Spec.Retry, after.Retry},
		{"/spec/approved", policy.Spec.Approved, after.Approved},
	} {
		switch {
		case slices.Equal(list.was, list.is):
		case len(list.is) == 0:
			edit.Operations = append(edit.Operations, fleet.Operation{Op: "remove", Path: list.path})
		default:
			edit.Operations = append(edit.Operations, fleet.Operation{Op: "add", Path: list.path, Value: list.is})
		}
	}
	return edit
}

// without returns a list without a text; nil where nothing is left.
func without(list []string, text string) []string {
	left := slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == text })
	if len(left) == 0 {
		return nil
	}
	return left
}
