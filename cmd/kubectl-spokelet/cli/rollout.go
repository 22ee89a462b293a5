package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
)

// rollout returns the command about the rollout of an add-on, with its verbs.
func (p *Plugin) rollout() *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", Short: "Show how far a change of an add-on is, and which contents the hub keeps",
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("%w: it is %s VERB addon NAME", errUse, c.Name())
		},
	}
	var wait time.Duration
	var again watch
	status := &cobra.Command{
		Use: "status addon NAME", Short: "Show the clusters of each placement by how far they are",
		Args: oneAddOn, Example: "  kubectl spokelet rollout status addon logs --wait 30m",
		RunE: func(c *cobra.Command, args []string) error {
			return p.watched(c.Context(), again, func(ctx context.Context) error { return p.rolledOut(ctx, args[1], wait) })
		},
	}
	again.add(status)
	status.Flags().DurationVar(&wait, "wait", 0, "look again until all clusters are complete or one failed, for so long")
	status.MarkFlagsMutuallyExclusive("watch", "wait")
	history := &cobra.Command{
		Use: "history addon NAME", Short: "List the contents of configurations that the hub keeps for the add-on",
		Args: oneAddOn,
		RunE: func(c *cobra.Command, args []string) error { return p.history(c.Context(), args[1]) },
	}
	c.AddCommand(status, history)
	c.AddCommand(p.pause(), p.resume(), p.approveContent(), p.undo(), p.retry())
	return c
}

// oneAddOn is the arguments of a command about one add-on.
func oneAddOn(c *cobra.Command, args []string) error {
	if len(args) != 2 || args[0] != report.KindAddOn {
		return fmt.Errorf("%w: it is %s", errUse, c.Use)
	}
	return nil
}

// rolledOut shows how far an add-on is, again and again for as long as it is not complete, none failed, and the time to
// wait has not run out.
func (p *Plugin) rolledOut(ctx context.Context, name string, wait time.Duration) error {
	deadline := p.Now().Add(wait)
	for {
		r, err := p.reader()
		if err != nil {
			return err
		}
		far, err := readRollout(ctx, r, name)
		again := err == nil && !far.Complete && far.Failed == 0 || passes(err)
		if again && p.waits(deadline) {
			if err := p.wait(ctx, deadline); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := p.farWritten(r, far); err != nil {
			return err
		}
		switch {
		case far.Failed == 0 && !far.Complete && wait > 0:
			return fmt.Errorf("%w: the rollout is not complete", errOutOfTime)
		case !far.Complete:
			return errProblem
		}
		return unread(r)
	}
}

// farWritten writes how far an add-on is: of -o name the clusters that are not complete.
func (p *Plugin) farWritten(r *fleet.Reader, far report.Rollout) error {
	named := []string{}
	for _, placement := range far.Placements {
		for _, stages := range placement.Stages {
			if stages.Stage == report.StageComplete {
				continue
			}
			for _, cluster := range stages.Clusters {
				named = append(named, report.KindCluster+"/"+cluster)
			}
		}
	}
	done, err := p.encoded(answer{Kind: "rollout", Hub: r.Source.Name(), Answer: far, Gaps: r.Gaps, names: named})
	if !done && err == nil {
		t := p.terminal()
		err = errors.Join(t.Rollout(far), t.Gaps(r.Gaps))
	}
	return err
}

// readRollout reads what says how far an add-on is. A part of that says nothing: clusters whose add-ons may not be read
// would be without any.
func readRollout(ctx context.Context, r *fleet.Reader, name string) (report.Rollout, error) {
	definition, err := fleet.Get[fleet.Definition](ctx, r, "", name)
	if err != nil {
		return report.Rollout{}, err
	}
	addOns, err := fleet.List[fleet.AddOn](ctx, r, fleet.Query{Name: name})
	if err != nil {
		return report.Rollout{}, err
	}
	decisions, err := facts.Decisions(ctx, r, definition)
	if err != nil {
		return report.Rollout{}, err
	}
	whole := func(g fleet.Gap) bool { return len(g.Objects) == 0 }
	if len(r.Gaps) > 0 && (definition == nil || slices.ContainsFunc(r.Gaps, whole)) {
		return report.Rollout{}, fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	far := report.RolloutOf(name, definition, addOns, decisions)
	if len(far.Placements) == 0 {
		return far, fmt.Errorf("%w: there is no add-on %s, or it is on no cluster", errUse, name)
	}
	far.Policy, far.Windows, err = facts.Policy(ctx, r, name)
	return far, err
}

// kept is a content that the hub keeps for an add-on.
type kept struct {
	Config string      `json:"config"`
	Hash   string      `json:"hash"`
	Since  metav1.Time `json:"since"`
	// Clusters is how many of them have it in force.
	Clusters int `json:"clusters"`
}

// history lists the contents that the hub keeps.
func (p *Plugin) history(ctx context.Context, name string) error {
	r, err := p.reader()
	if err != nil {
		return err
	}
	if p.from != "" {
		return fmt.Errorf("%w: a bundle has no contents", errUse)
	}
	raw, err := fleet.Raw(ctx, r, fleet.Query{
		Resource:  fleet.Resource{Group: "apps", Version: "v1", Plural: "controllerrevisions", Namespaced: true},
		Partial:   true,
		Namespace: names.NamespaceHub,
		Labels:    map[string]string{names.LabelAddonName: name, names.LabelConfigRevision: "true"},
	})
	if err != nil {
		return err
	}
	addOns, err := fleet.List[fleet.AddOn](ctx, r, fleet.Query{Name: name})
	if err != nil {
		return err
	}
	all, err := keptOf(raw, addOns)
	if err != nil {
		return err
	}
	if len(all) == 0 && len(r.Gaps) > 0 {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	named := []string{}
	for _, one := range all {
		named = append(named, strings.Replace(one.Config, " ", "/", 1))
	}
	done, err := p.encoded(answer{Kind: "history", Hub: r.Source.Name(), Answer: all, Gaps: r.Gaps, names: named})
	if done || err != nil {
		return err
	}
	t := p.terminal()
	table := show.Table{Headings: []string{"CONTENT", "HASH", "AGE", "CLUSTERS"}}
	for _, one := range all {
		table.Rows = append(table.Rows, []string{
			one.Config, fmt.Sprintf("%.12s", one.Hash), t.Since(&one.Since.Time), fmt.Sprint(one.Clusters),
		})
	}
	return errors.Join(t.Table(table), t.Gaps(r.Gaps))
}

// keptOf reads what ControllerRevisions keep, the latest first, and counts the clusters that have it in force.
func keptOf(raw []json.RawMessage, addOns []fleet.AddOn) ([]kept, error) {
	applied := map[string]int{}
	for _, addOn := range addOns {
		for _, config := range addOn.Status.ConfigReferences {
			if config.Applied != nil {
				applied[contentOf(config.Resource, config.Applied.Namespace, config.Applied.Name)+" "+config.Applied.SpecHash]++
			}
		}
	}
	var all []kept
	for _, one := range raw {
		var revision metav1.PartialObjectMetadata
		if err := json.Unmarshal(one, &revision); err != nil {
			return nil, fmt.Errorf("decoding a content of the hub: %w", err)
		}
		of, err := addonconfig.KeptBy(&revision)
		if err != nil {
			continue // Whoever made it, it is none of the hub manager.
		}
		config := contentOf(of.Resource, of.Namespace, of.Name)
		all = append(all, kept{
			Config: config, Hash: of.SpecHash, Since: metav1.NewTime(fleet.Known(revision.CreationTimestamp.Time)),
			Clusters: applied[config+" "+of.SpecHash],
		})
	}
	slices.SortStableFunc(all, func(a, b kept) int { return b.Since.Compare(a.Since.Time) })
	return all, nil
}

// contentOf names a configuration.
func contentOf(resource, namespace, name string) string {
	return resource + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}
