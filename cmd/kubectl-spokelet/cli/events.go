package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/names"
)

// eventFlags are the flags of events.
type eventFlags struct {
	spoke

	everywhere, watch bool
}

// events returns the command that shows the Events of objects of a fleet.
func (p *Plugin) events() *cobra.Command {
	var flags eventFlags
	c := &cobra.Command{
		Use:   "events [addon NAME | cluster NAME | work NAME]",
		Short: "Show the Events of add-ons, works, clusters and certificate requests in the order of time",
		Long: "events shows the Events of the hub that are about an object: an add-on with its works, its certificate " +
			"requests and its ClusterManagementAddOn, a cluster with all that is in its namespace, or a work. Without an " +
			"object it shows those of a namespace (-n), or of all with -A. Equal ones are one row. With --spoke-context " +
			"those of the managed cluster are among them.",
		Example: "  kubectl spokelet events addon logs -n store-077\n  kubectl spokelet events -A -w",
		Args: func(_ *cobra.Command, args []string) error {
			kinds := []string{report.KindAddOn, report.KindCluster, report.KindWork}
			if len(args) != 0 && (len(args) != 2 || !slices.Contains(kinds, args[0])) {
				return fmt.Errorf("%w: it is events, events addon NAME, events cluster NAME, or events work NAME", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			args = append(args, "", "")
			return p.happened(c.Context(), flags, subject{args[0], args[1]})
		},
	}
	flags.add(c)
	c.Flags().BoolVarP(&flags.everywhere, "all-namespaces", "A", false, "those of all clusters")
	c.Flags().BoolVarP(&flags.watch, "watch", "w", false, "go on with those that happen from now on")
	return c
}

// subject is what Events are asked about; empty for all of a namespace.
type subject struct{ kind, name string }

// scope says which Events are wanted, and where they are.
type scope struct {
	// namespaces are where they are; an empty name means everywhere.
	namespaces []string
	wanted     func(*fleet.Event) bool
}

// happened writes the Events about an object.
func (p *Plugin) happened(ctx context.Context, flags eventFlags, of subject) error {
	r, err := p.reader()
	if err != nil {
		return err
	}
	s, err := p.scope(ctx, r, flags.everywhere, of)
	if err != nil {
		return err
	}
	all, err := s.read(ctx, r)
	if err != nil {
		return err
	}
	if len(all) == 0 && s.unread(r) {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	rows, gaps := report.Events(all, ""), r.Gaps
	if flags.named() {
		further, more, err := p.happenedThere(ctx, flags.spoke, r, of)
		if err != nil {
			return err
		}
		rows, gaps = append(rows, further...), append(gaps, more...)
		report.SortEvents(rows)
	}
	if !flags.watch {
		return p.writeEvents(r, rows, gaps)
	}
	if p.from != "" {
		return fmt.Errorf("%w: a bundle does not change: leave out -w or --from", errUse)
	}
	if err := p.writeBefore(rows, gaps); err != nil {
		return err
	}
	return p.watchEvents(ctx, r, s, all)
}

// writeBefore writes what happened before a watch begins. A format for programs has no place for gaps on its lines:
// they are told beside them.
func (p *Plugin) writeBefore(rows []report.Event, gaps []fleet.Gap) error {
	if p.asText() {
		t := p.terminal()
		return errors.Join(t.Events(rows, true), t.Gaps(gaps))
	}
	for _, row := range rows {
		if err := p.writeEvent(row); err != nil {
			return err
		}
	}
	return show.New(p.Streams.ErrOut, p.Environment, p.Now()).Gaps(gaps)
}

// scope finds what is about an object.
func (p *Plugin) scope(ctx context.Context, r *fleet.Reader, everywhere bool, of subject) (scope, error) {
	kind, name := of.kind, of.name
	namespace := ""
	if !everywhere && kind != report.KindCluster {
		var err error
		if namespace, err = p.namespace(); err != nil {
			return scope{}, err
		}
	}
	// Events about objects that are in no namespace are in the namespace "default".
	s := scope{namespaces: []string{namespace}}
	about := func(e *fleet.Event, kind, name string) bool { return e.Object.Kind == kind && e.Object.Name == name }
	switch kind {
	case report.KindAddOn:
		related, err := relatedTo(ctx, r, namespace, name)
		s.wanted = func(e *fleet.Event) bool {
			return about(e, "ManagedClusterAddOn", name) || about(e, "ClusterManagementAddOn", name) ||
				related[keyOf(e)]
		}
		s.also(defaultNamespace)
		return s, err
	case report.KindCluster:
		requests, err := requestsOf(ctx, r, map[string]string{names.LabelClusterName: name})
		s.namespaces = []string{name, defaultNamespace}
		s.wanted = func(e *fleet.Event) bool {
			inside := e.Object.Namespace == name && fleet.OfFleet(e.Object.APIVersion, e.Object.Kind)
			return inside || about(e, "ManagedCluster", name) || requests[keyOf(e)]
		}
		return s, err
	case report.KindWork:
		s.wanted = func(e *fleet.Event) bool { return about(e, "ManifestWork", name) }
		return s, nil
	}
	s.wanted = func(e *fleet.Event) bool { return fleet.OfFleet(e.Object.APIVersion, e.Object.Kind) }
	return s, nil
}

// also adds a namespace, unless it is there.
func (s *scope) also(namespace string) {
	if s.namespaces[0] != "" && !slices.Contains(s.namespaces, namespace) {
		s.namespaces = append(s.namespaces, namespace)
	}
}

// keyOf names the object of an Event, as kind/namespace/name.
func keyOf(e *fleet.Event) string {
	return e.Object.Kind + "/" + e.Object.Namespace + "/" + e.Object.Name
}

// relatedTo are the works and the certificate requests of an add-on, as kind/namespace/name.
func relatedTo(ctx context.Context, r *fleet.Reader, cluster, addOn string) (map[string]bool, error) {
	of := map[string]string{names.LabelAddonName: addOn}
	q := fleet.Query{Resource: works(), Namespace: cluster, Labels: of, Partial: true}
	found, err := fleet.Read[metav1.PartialObjectMetadata](ctx, r, q)
	if err != nil {
		return nil, err
	}
	if cluster != "" {
		of = map[string]string{names.LabelAddonName: addOn, names.LabelClusterName: cluster}
	}
	related, err := requestsOf(ctx, r, of)
	for _, work := range found {
		related["ManifestWork/"+work.Namespace+"/"+work.Name] = true
	}
	return related, err
}

// requestsOf are the certificate requests with some labels, as kind//name.
func requestsOf(ctx context.Context, r *fleet.Reader, of map[string]string) (map[string]bool, error) {
	found := map[string]bool{}
	requests := fleet.ResourceOf[fleet.Request]()
	q := fleet.Query{Resource: requests, Labels: of, Partial: true}
	all, err := fleet.Read[metav1.PartialObjectMetadata](ctx, r, q)
	for _, request := range all {
		found["CertificateSigningRequest//"+request.Name] = true
	}
	return found, err
}

// read reads the Events of a scope.
func (s scope) read(ctx context.Context, r *fleet.Reader) ([]fleet.Event, error) {
	var all []fleet.Event
	for _, namespace := range s.namespaces {
		found, err := fleet.Read[fleet.Event](ctx, r, fleet.Query{Resource: fleet.Events(), Namespace: namespace})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if s.wanted(&found[i]) {
				all = append(all, found[i])
			}
		}
	}
	return all, nil
}

// unread reports whether the Events of no namespace of the scope could be read.
func (s scope) unread(r *fleet.Reader) bool {
	return !slices.ContainsFunc(s.namespaces, func(namespace string) bool {
		what := "events"
		if namespace != "" {
			what += " in namespace " + namespace
		}
		return !slices.ContainsFunc(r.Gaps, func(g fleet.Gap) bool { return g.What == what || g.What == "events" })
	})
}

// happenedThere reads the Events of the managed cluster: those in the namespaces of the objects of an add-on or a work
// and of the agent, and of a cluster all. A cluster that does not answer is a gap.
func (p *Plugin) happenedThere(
	ctx context.Context, into spoke, hub *fleet.Reader, of subject,
) ([]report.Event, []fleet.Gap, error) {
	r, err := readerOf(p.flags(into.context, into.kubeconfig), true)
	if err != nil {
		return nil, nil, err
	}
	inside := map[string]bool{into.agents: true}
	ofWorks := of.kind == report.KindAddOn || of.kind == report.KindWork
	if ofWorks {
		f, err := p.follow(ctx, hub, of.kind, of.name)
		if err != nil {
			return nil, nil, err
		}
		for i := range f.works {
			for _, m := range f.works[i].Status.Resources.Manifests {
				inside[m.Resource.Namespace] = true
			}
		}
	}
	q := fleet.Query{Resource: fleet.Events()}
	all, err := fleet.Read[fleet.Event](ctx, r, q)
	if err != nil && ctx.Err() == nil && isUnreached(err) {
		return nil, append(r.Gaps, silent(into, err)), nil
	}
	if ofWorks {
		all = slices.DeleteFunc(all, func(e fleet.Event) bool { return !inside[e.Object.Namespace] })
	}
	return report.Events(all, report.SideCluster), r.Gaps, err
}

// writeEvents writes rows of Events.
func (p *Plugin) writeEvents(r *fleet.Reader, rows []report.Event, gaps []fleet.Gap) error {
	if done, err := p.encoded(answer{Kind: "events", Hub: r.Source.Name(), Answer: rows, Gaps: gaps}); done {
		return err
	}
	t := p.terminal()
	if p.output != outputName {
		return errors.Join(t.Events(rows, true), t.Gaps(gaps))
	}
	for _, row := range rows {
		if err := p.nameOf(row); err != nil {
			return err
		}
	}
	return nil
}

// nameOf writes the name of the object of a row.
func (p *Plugin) nameOf(row report.Event) error {
	_, err := fmt.Fprintf(p.Streams.Out, "%s/%s\n", strings.ToLower(show.Safe(row.Kind)), show.Safe(row.Name))
	return err
}

// watchEvents writes Events as they happen, those that were read before left out, until the context ends.
func (p *Plugin) watchEvents(ctx context.Context, r *fleet.Reader, s scope, before []fleet.Event) error {
	seen := map[string]string{}
	for i := range before {
		seen[before[i].Metadata.UID] = before[i].Metadata.ResourceVersion
	}
	type change struct {
		event fleet.Event
		err   error
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan change), make(chan struct{})
	for _, namespace := range s.namespaces {
		one := r.Again()
		go func() {
			q := fleet.Query{Resource: fleet.Events(), Namespace: namespace}
			for event, err := range fleet.Changes[fleet.Event](ctx, one, q, p.Pause) {
				select {
				case changes <- change{event, err}:
				case <-ctx.Done():
				}
			}
			if one.Lacks("events") {
				select {
				case changes <- change{err: fmt.Errorf("%w: %w", errBlind, gapsOf(one))}:
				case <-ctx.Done():
				}
			}
			ended <- struct{}{}
		}()
	}
	var failed error
	for left := len(s.namespaces); left > 0; {
		select {
		case <-ended:
			left--
		case c := <-changes:
			m := c.event.Metadata
			switch {
			case failed != nil:
			case errors.Is(c.err, fleet.ErrUndecodable):
				p.warn(c.err)
			case isUnanswered(c.err) && !errors.Is(c.err, fleet.ErrRefused): // It is asked again.
				p.warn(c.err)
			case c.err != nil:
				failed = c.err
				stop()
			case s.wanted(&c.event) && seen[m.UID] != m.ResourceVersion:
				seen[m.UID] = m.ResourceVersion
				if failed = p.writeEvent(report.EventOf(&c.event, "")); failed != nil {
					stop()
				}
			}
		}
	}
	return failed
}

// writeEvent writes one row: in JSON on one line, in YAML as a document.
func (p *Plugin) writeEvent(row report.Event) error {
	if p.output == outputName {
		return p.nameOf(row)
	}
	if p.asText() {
		return p.terminal().Events([]report.Event{row}, false)
	}
	raw, err := p.encode(answer{Kind: "event", Answer: row}, "")
	if err != nil {
		return err
	}
	if p.output == "yaml" {
		raw = append([]byte("---\n"), raw...)
	}
	_, err = p.Streams.Out.Write(raw)
	return err
}
