package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

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
			"by the " +
			"code of the hub manager of Spokelet. Clusters with the same differences are one group, removals come first, and " +
			"values of Secrets are masked. Placements of the files are not scheduled: each keeps its clusters.\n\nThe exit " +
			"status is 0 where nothing would change, and 1 where something would.",
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
			return p.compare(c.Context(), args[1], files, selector, addon.Precedence(precedence))
		},
	}
	c.Flags().StringSliceVarP(&files, "filename", "f", nil,
		"files or folders with the changed objects, - for the standard input")
	c.Flags().StringVar(&clusters, "clusters", "", "look at the clusters with these labels only")
	c.Flags().StringVar(&precedence, "config-precedence", precedence,
		"which of several configurations of one kind counts on this hub: Last or First")
	return c
}

// compare reads, renders twice, and writes what differs.
func (p *Plugin) compare( //nolint:revive // Each is another part.
	ctx context.Context, name string, files []string, selector labels.Selector, precedence addon.Precedence,
) error {
	edits, err := p.objects(files)
	if err != nil {
		return fmt.Errorf("%w: %w", errUse, err)
	}
	r, err := p.reader()
	if err != nil {
		return err
	}
	raw, err := fleet.Whole(ctx, r, name)
	if err != nil {
		return err
	}
	if len(r.Gaps) > 0 { // What is rendered from a part of the objects says nothing.
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	live, err := decoded(raw)
	if err != nil {
		return err
	}
	options := render.Options{AddOns: []string{name}, Precedence: precedence}
	if !selector.Empty() {
		if options.Clusters = matching(live, selector); len(options.Clusters) == 0 {
			return fmt.Errorf("%w: --clusters: no cluster has these labels", errUse)
		}
	}
	before, err := rendered(ctx, live, nil, options)
	if err != nil {
		return fmt.Errorf("%w: rendering what the hub has: %w", errBlind, err)
	}
	kept := replaced(live, edits)
	after, err := rendered(ctx, kept, edits, options)
	if err != nil {
		return fmt.Errorf("%w: rendering with the files: %w", errUse, err)
	}
	groups, err := change.Compare(before, after)
	if err != nil {
		return err
	}
	var rollouts []change.Rollout
	if selector.Empty() { // A rollout is one of all clusters.
		if rollouts, err = rolloutsOf(name, slices.Concat(kept, edits), change.Clusters(groups)); err != nil {
			return err
		}
	}
	a := changed{AddOn: name, Clusters: len(after), Groups: groups, Rollouts: rollouts}
	done, err := p.encoded(answer{Kind: "diff", Hub: r.Source.Name(), Answer: a})
	if !done && err == nil {
		t := p.terminal()
		err = t.Changes(name, a.Clusters, groups, rollouts)
	}
	if err == nil && slices.ContainsFunc(groups, change.Group.Changes) {
		return errProblem
	}
	return err
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

// objects reads the objects of files and folders.
func (p *Plugin) objects(files []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range files {
		if name == "-" {
			found, err := documents(p.Streams.In)
			if err != nil {
				return nil, fmt.Errorf("reading the standard input: %w", err)
			}
			all = append(all, found...)
			continue
		}
		err := filepath.WalkDir(name, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path != name && !slices.Contains([]string{".yaml", ".yml", ".json"},
				filepath.Ext(path)) {
				return err
			}
			content, err := os.ReadFile(path) //nolint:gosec // The user names the folder.
			if err != nil {
				return err
			}
			found, err := documents(bytes.NewReader(content))
			if err != nil {
				return fmt.Errorf("reading %s: %w", path, err)
			}
			all = append(all, found...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errors.New("-f: the files have no objects")
	}
	return all, nil
}

// documents reads the objects of a stream of YAML or JSON.
func documents(in io.Reader) ([]*unstructured.Unstructured, error) {
	const ahead = 4096
	var all []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(in, ahead); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(u.Object) == 0:
		case u.IsList():
			err = u.EachListItem(func(o runtime.Object) error {
				if one, is := o.(*unstructured.Unstructured); is {
					all = append(all, one)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		default:
			all = append(all, u)
		}
	}
}

// decoded decodes objects of the hub.
func decoded(raw []json.RawMessage) ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, 0, len(raw))
	for _, one := range raw {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(one); err != nil {
			return nil, fmt.Errorf("decoding an object of the hub: %w", err)
		}
		u.SetManagedFields(nil) // They are a third of an object.
		all = append(all, u)
	}
	return all, nil
}

// identity is the same for objects that a hub could not have at once.
func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + " " + u.GetNamespace() + "/" + u.GetName()
}

// replaced returns objects without those whose names others have.
func replaced(all, by []*unstructured.Unstructured) []*unstructured.Unstructured {
	edited := make(map[string]bool, len(by))
	for _, u := range by {
		edited[identity(u)] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(u *unstructured.Unstructured) bool { return edited[identity(u)] })
}

// rendered renders an add-on from objects of the hub, and from edited ones.
func rendered(ctx context.Context, live, edits []*unstructured.Unstructured,
	o render.Options) ([]render.Deployment, error) {
	hub := render.File{Name: "the hub", Stored: make([]*unstructured.Unstructured, 0, len(live))}
	for _, u := range live {
		hub.Stored = append(hub.Stored, u.DeepCopy())
	}
	var text strings.Builder
	for _, u := range edits {
		raw, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", identity(u), err)
		}
		text.Write(raw)
		text.WriteString("---\n")
	}
	files := []render.File{hub, {Name: "the files", Text: text.String()}}
	return render.Program{Name: nameOfProgram}.Deployments(ctx, files, o)
}
