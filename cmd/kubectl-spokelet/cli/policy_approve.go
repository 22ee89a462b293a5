package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
)

// approveContent returns the command that approves what clusters wait for.
func (p *Plugin) approveContent() *cobra.Command {
	var wanted choice
	c := p.rules(func(name string, policy *policies.AddOnPolicy) (sentence, error) {
		return approving(name, policy, wanted)
	}, cobra.Command{
		Use: "approve addon NAME", Short: "Approve the content, or the wave, that clusters wait for",
		Long: "approve adds a content to spec.approved of the AddOnPolicy of the add-on. It approves the only one that " +
			"clusters wait for, or the one that --content names. With approval PerWave that is the wave whose turn it is; " +
			"--all-waves approves the whole content. Other content has other names, so an approval never covers what is " +
			"written later.",
		Example: "  kubectl spokelet rollout approve addon logs --dry-run",
	})
	c.Flags().StringVar(&wanted.name, "content", "", "the name of the content, or of the wave, as status.contents has it")
	c.Flags().BoolVar(&wanted.all, "all-waves", false, "approve all waves of the content")
	c.MarkFlagsMutuallyExclusive("content", "all-waves")
	return c
}

// choice is what a command is to approve: a name, all waves of the only content that waits, or the only one that is
// to be approved now.
type choice struct {
	name string
	all  bool
}

// maxTold is how many bytes of what authors and tenants write a sentence tells.
const maxTold = 1 << 10

// offer is a name that may be approved, with what is said of it.
type offer struct{ name, says string }

// mayHold reports whether clusters may wait for an approval: the policy asks for one, or undid so many contents in a
// row that the next one needs it.
func mayHold(policy *policies.AddOnPolicy) bool {
	asks := policy.Spec.Approval == policies.ApprovalPerRollout || policy.Spec.Approval == policies.ApprovalPerWave
	undoes := policy.Spec.OnFailure != nil && policy.Spec.OnFailure.Action != policies.ActionStop
	return asks || undoes
}

// approving returns the write that approves what was chosen.
func approving(name string, policy *policies.AddOnPolicy, wanted choice) (sentence, error) {
	if policy == nil || !mayHold(policy) {
		return sentence{}, fmt.Errorf(
			"%w: add-on %s needs no approval: there is no AddOnPolicy with approval PerRollout or PerWave", errUse, name)
	}
	now, later := offers(policy, wanted.all)
	open := append(slices.Clone(now), later...)
	content := wanted.name
	switch {
	case content != "" && slices.Contains(policy.Spec.Approved, content):
		return sentence{}, fmt.Errorf("%w: content %s of add-on %s is approved already", errUse, content, name)
	case content != "":
	case policy.Status.ObservedGeneration != policy.Generation:
		return sentence{}, fmt.Errorf("%w: the hub manager has not seen the present AddOnPolicy %s yet; try again",
			errUse, name)
	case len(open) == 0:
		return sentence{}, fmt.Errorf("%w: no cluster waits for an approval of add-on %s", errUse, name)
	case len(now) == 0:
		return sentence{}, fmt.Errorf("%w: no wave that is not approved has its turn; name one with --content, or take "+
			"--all-waves: %s", errUse, saidOf(open))
	case len(now) > 1:
		return sentence{}, fmt.Errorf("%w: clusters wait for several contents, name one with --content: %s", errUse,
			saidOf(now))
	default:
		content = now[0].name
	}
	what := content + ", for which no cluster of a placement is known to wait,"
	whole, _ := offers(policy, true)
	known := slices.Concat(open, whole)
	if at := slices.IndexFunc(known, func(o offer) bool { return o.name == content }); at >= 0 {
		what = known[at].says
	}
	edit := sentence{
		says: fmt.Sprintf("AddOnPolicy %s: content %s is approved", name, what),
		Edit: fleet.Edit{Resource: addOnPolicies(), Name: name, Operations: sameUID(policy)},
	}
	path, value := "/spec/approved", any([]string{content})
	if len(policy.Spec.Approved) > 0 {
		path, value = path+"/-", content
	}
	edit.Operations = append(edit.Operations, fleet.Operation{Op: "add", Path: path, Value: value})
	return edit, nil
}

// offers returns what clusters wait for and the policy does not approve: what is to be approved now, and the waves that
// do not have their turn. Of whole contents, all are to be approved now.
func offers(policy *policies.AddOnPolicy, whole bool) (now, later []offer) {
	approved := func(name string) bool { return slices.Contains(policy.Spec.Approved, name) }
	for _, c := range policy.Status.Contents {
		if c.Approved || approved(c.Name) || c.Content != "" && approved(c.Content) {
			continue
		}
		consists := message.Cut(strings.Join(c.Configurations, ", "), maxTold)
		one := offer{name: c.Name, says: fmt.Sprintf("%s (%s)", c.Name, consists)}
		switch {
		case whole:
			one.name = cmp.Or(c.Content, c.Name)
			one.says = fmt.Sprintf("%s (%s), with all its waves,", message.Cut(one.name, maxTold), consists)
			if !slices.Contains(now, one) {
				now = append(now, one)
			}
			continue
		case c.Wave != "":
			one.says += " in " + message.Cut(c.Wave, maxTold)
		case policy.Spec.Approval == policies.ApprovalPerWave: // After too many tries, it is the content that waits.
			one.says += ", with all its waves,"
		}
		if c.Wave != "" && !c.Turn {
			later = append(later, one)
			continue
		}
		now = append(now, one)
	}
	return now, later
}

// saidOf lists offers.
func saidOf(all []offer) string {
	said := make([]string, 0, len(all))
	for _, one := range all {
		said = append(said, one.says)
	}
	return strings.Join(said, "; ")
}

// seenWithin is how long a command waits for a hub manager to see a policy.
const seenWithin = 10 * time.Second

// comesIntoForce waits until a hub manager has seen the policy of an add-on, and warns where none has: one that does
// not know the kind, or may not list it, does nothing by it.
func (p *Plugin) comesIntoForce(ctx context.Context, r *fleet.Reader, name string) error {
	for deadline := p.Now().Add(seenWithin); ; {
		policy, err := fleet.Get[fleet.Policy](ctx, r, "", name)
		switch {
		case err != nil:
			return err
		case policy != nil && policy.Status.ObservedGeneration > 0:
			return nil
		case p.waits(deadline):
			if err := p.wait(ctx, deadline); err != nil {
				return err
			}
			continue
		}
		_, err = fmt.Fprintf(p.Streams.ErrOut, "warning: it is written, and no hub manager has seen AddOnPolicy %s within "+
			"%s, so it is not in force: the hub manager does not run, is older than the kind, or may not list it; "+
			"docs/reference/policies.md has its rights\n", name, seenWithin)
		return err
	}
}
