package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/change"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/render"
)

// changed is the answer of diff in JSON and YAML.
type changed struct {
	AddOn    string           `json:"addOn"`
	Clusters int              `json:"clusters"`
	Groups   []change.Group   `json:"groups"`
	Rollouts []change.Rollout `json:"rollouts,omitempty"`
}

// diff returns the command that shows what a change of an add-on would do.
func (p *Plugin) diff() *cobra.Command {
	var files []string
	var clusters string
	precedence := string(addon.LastCounts)
	c := &cobra.Command{
		Use:   "diff addon NAME -f FILE",
		Short: "Show what a changed template, configuration or definition would do to the fleet, and write nothing",
		Long: "diff renders the add-on from the objects of the hub, and again with those of the files in their place, " +
			"by the code of the hub manager of Spokelet. Clusters with the same differences are one group, removals come " +
			"first, and values of Secrets are masked. Placements of the files are not scheduled: each keeps its " +
			"clusters.\n\nThe exit status is 0 where nothing would change, and 1 where something would.",
		Example: "  kubectl spokelet diff addon logs -f template-v10.yaml --clusters region=eu",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "addon" {
				return fmt.Errorf("%w: it is diff addon NAME", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			selector, err := labels.Parse(clusters)
			switch {
			case err != nil:
				return fmt.Errorf("%w: --clusters: %w", errUse, err)
			case len(files) == 0:
				return fmt.Errorf("%w: -f names the files with the changed objects", errUse)
			case p.from != "":
				return fmt.Errorf("%w: a bundle has no content of templates and configurations to compare", errUse)
			}
			if err := addon.Precedence(precedence).Check(); err != nil {
				return fmt.Errorf("%w: %w", errUse, err)
			}
			return p.compare(c.Context(), comparison{
				addOn: args[1], files: files, clusters: selector, precedence: addon.Precedence(precedence),
			})
		},
	}
	c.Flags().StringSliceVarP(&files, "filename", "f", nil,
		"files or folders with the changed objects, - for the standard input")
	c.Flags().StringVar(&clusters, "clusters", "", "look at the clusters with these labels only")
	c.Flags().StringVar(&precedence, "config-precedence", precedence,
		"which of several configurations of one kind counts on this hub: Last or First")
	return c
}

// comparison is what diff is asked for.
type comparison struct {
	addOn      string
	files      []string
	clusters   labels.Selector
	precedence addon.Precedence
}

// compare reads, renders twice, and writes what differs.
func (p *Plugin) compare(ctx context.Context, c comparison) error {
	edits, err := render.ReadFiles(c.files, p.Streams.In)
	if err != nil {
		return fmt.Errorf("%w: %w", errUse, err)
	}
	switch edited, err := render.Objects(edits); {
	case err != nil:
		return fmt.Errorf("%w: %w", errUse, err)
	case len(edited) == 0:
		return fmt.Errorf("%w: -f: the files have no objects", errUse)
	}
	r, err := p.reader()
	if err != nil {
		return err
	}
	live, err := stored(ctx, r, c.addOn)
	if err != nil {
		return err
	}
	options := render.Options{AddOns: []string{c.addOn}, Precedence: c.precedence}
	if !c.clusters.Empty() || len(r.Gaps) > 0 { // One that cannot be decoded is not rendered as one without labels.
		if options.Clusters = matching(live, c.clusters); len(options.Clusters) == 0 {
			return fmt.Errorf("%w: --clusters: no cluster has these labels", errUse)
		}
	}
	program := render.Program{Name: nameOfProgram}
	before, err := program.Deployments(ctx, []render.File{ofHub(live)}, options)
	if err != nil {
		return fmt.Errorf("%w: rendering what the hub has: %w", errBlind, err)
	}
	after, err := program.Deployments(ctx, append(slices.Clip(edits), ofHub(live)), options)
	if err != nil {
		return fmt.Errorf("%w: rendering with the files: %w", errUse, err)
	}
	a := changed{AddOn: c.addOn, Clusters: len(after)}
	if a.Groups, err = change.Compare(before, after); err != nil {
		return err
	}
	if c.clusters.Empty() { // A rollout is one of all clusters.
		next, err := render.Objects(append(slices.Clip(edits), ofHub(live)))
		if err != nil {
			return fmt.Errorf("%w: %w", errUse, err)
		}
		if a.Rollouts, err = rolloutsOf(c.addOn, next, change.Clusters(a.Groups)); err != nil {
			return err
		}
	}
	return p.different(r, a)
}

// different writes what differs.
func (p *Plugin) different(r *fleet.Reader, a changed) error {
	named := []string{}
	for _, group := range a.Groups {
		for _, difference := range group.Differences {
			named = append(named, difference.What)
		}
	}
	done, err := p.encoded(answer{Kind: "diff", Hub: r.Source.Name(), Answer: a, Gaps: r.Gaps, names: named})
	if !done && err == nil {
		t := p.terminal()
		err = errors.Join(t.Changes(a.AddOn, a.Clusters, a.Groups, a.Rollouts), t.Gaps(r.Gaps))
	}
	if err == nil && slices.ContainsFunc(a.Groups, change.Group.Changes) {
		return errProblem
	}
	return err
}

// ofHub returns copies of the objects of the hub as a file.
func ofHub(live []*unstructured.Unstructured) render.File {
	f := render.File{Name: "the hub", Stored: make([]*unstructured.Unstructured, 0, len(live))}
	for _, u := range live {
		f.Stored = append(f.Stored, u.DeepCopy())
	}
	return f
}

// matching returns the names of the clusters with some labels.
func matching(all []*unstructured.Unstructured, selector labels.Selector) []string {
	var names []string
	for _, u := range all {
		if u.GetKind() == "ManagedCluster" && selector.Matches(labels.Set(u.GetLabels())) {
			names = append(names, u.GetName())
		}
	}
	return names
}

// stored reads the objects of the hub from which an add-on is rendered.
func stored(ctx context.Context, r *fleet.Reader, addOn string) ([]*unstructured.Unstructured, error) {
	raw, err := fleet.Whole(ctx, r, addOn)
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(r.Gaps, func(g fleet.Gap) bool { return len(g.Objects) == 0 }):
		return nil, fmt.Errorf("%w: %w", errBlind, gapsOf(r)) // What is rendered from a part of the kinds says nothing.
	}
	all := make([]*unstructured.Unstructured, 0, len(raw))
	for _, one := range raw {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(one); err != nil {
			return nil, fmt.Errorf("decoding an object of the hub: %w", err)
		}
		if u.GetNamespace() != "" && r.LacksObject("managedclusters", u.GetNamespace()) {
			continue // An add-on on a cluster that cannot be decoded.
		}
		u.SetManagedFields(nil) // They are a third of an object.
		all = append(all, u)
	}
	return all, nil
}
