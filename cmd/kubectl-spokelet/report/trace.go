package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// Link is one object on the way from an object of a cluster up to who wanted it.
type Link struct {
	// Step says what the object is on that way.
	Step string `json:"step"`
	// Side is "cluster" for what is on the managed cluster; empty for what is on the hub.
	Side      string `json:"side,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Missing reports that it does not exist or may not be read.
	Missing  bool   `json:"missing,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	// Made is when it was created; null where that is not known.
	Made *time.Time `json:"made"`
	// Writers are who wrote it, the last one first.
	Writers []Writer `json:"writers,omitempty"`
}

// Writer is a field manager of an object.
type Writer struct {
	Manager     string     `json:"manager"`
	Operation   string     `json:"operation"`
	Subresource string     `json:"subresource,omitempty"`
	At          *time.Time `json:"at"`
}

// Trace is the way from an object of a cluster up to who wanted it.
type Trace struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster and Hub are the addresses of the two API servers; Hub is empty where none was named.
	Cluster string `json:"cluster"`
	Hub     string `json:"hub,omitempty"`
	Links   []Link `json:"links"`
	// Problem says why the way ends early; null where it does not.
	Problem *Problem `json:"problem"`
}

// TraceFacts are the objects on the way.
type TraceFacts struct {
	Kind, Namespace, Name string
	// Cluster and Hub are the addresses of the two API servers; Hub is empty where none was named.
	Cluster, Hub string
	// Objects begin with the object, each followed by what owns it; empty where it does not exist.
	Objects []fleet.Traced
	// Records are the AppliedManifestWorks that have the last of the objects.
	Records []TracedRecord
	// Works are those of the records on the hub.
	Works []TracedWork
}

// TracedRecord is an AppliedManifestWork with who wrote it.
type TracedRecord struct {
	fleet.Record

	Owned fleet.Traced
}

// TracedWork is the ManifestWork of a record, and all that leads to it.
type TracedWork struct {
	// Name is the name in the record, and Cluster the namespace; empty where it is not known.
	Name, Cluster string
	// Named says where the name of the cluster is from. The hub does not vouch for one that an agent says.
	Named string
	// Unknown says why the namespace is not known.
	Unknown string
	// Links are the objects of the hub, the work first.
	Links []Link
}

// missing says that the hub does not have the work.
func (w *TracedWork) missing() string {
	said := fmt.Sprintf("the hub has no ManifestWork %s in namespace %s", w.Name, w.Cluster)
	if w.Named != "" {
		said += ", which is the cluster " + w.Named
	}
	return said
}

// LinkOf is the link that an object is.
func LinkOf(step, side string, o fleet.Traced) Link {
	l := Link{Step: step, Side: side, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	l.Made = fleet.Instant(o.Metadata.CreationTimestamp.Time)
	l.Writers = writersOf(o.Metadata.Writers)
	return l
}

// writersOf are the field managers of an object, the last writer first. Who writes the status alone comes last.
func writersOf(entries []metav1.ManagedFieldsEntry) []Writer {
	all := make([]Writer, 0, len(entries))
	for _, e := range entries {
		w := Writer{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource}
		if e.Time != nil {
			w.At = fleet.Instant(e.Time.Time)
		}
		all = append(all, w)
	}
	at := func(w Writer) time.Time {
		if w.At == nil {
			return time.Time{}
		}
		return *w.At
	}
	slices.SortStableFunc(all, func(a, b Writer) int {
		return cmp.Or(cmp.Compare(len(a.Subresource), len(b.Subresource)), at(b).Compare(at(a)))
	})
	return all
}

// TraceOf puts the objects on the way in their order, and says where it ends early.
func TraceOf(f TraceFacts) Trace {
	t := Trace{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, Cluster: f.Cluster, Hub: f.Hub}
	if len(f.Objects) == 0 {
		t.end(causes.ObjectMissing, message.Object(f.Kind, f.Namespace, f.Name)+" does not exist on the cluster",
			Command("", "kubectl get {kind} -A --context CONTEXT", "{kind}", strings.ToLower(f.Kind)))
		return t
	}
	for i, o := range f.Objects {
		l := LinkOf("object", SideCluster, o)
		if i > 0 {
			l.Step = "owner"
		}
		l.Evidence = keeper(o)
		t.Links = append(t.Links, l)
	}
	if len(f.Records) == 0 {
		t.end(causes.Untraced, untraced(f.Objects[len(f.Objects)-1]), "ask who wrote it")
		return t
	}
	for i := range f.Records {
		r := &f.Records[i]
		l := LinkOf("recorded", SideCluster, r.Owned)
		l.Evidence = fmt.Sprintf("work %s of the hub with hash %s, by agent %s, %d objects", r.Spec.Work,
			short(r.Spec.HubHash), short(r.Spec.AgentID), len(r.Status.Applied))
		if r.Status.Eviction != nil {
			l.Evidence += ", about to be removed"
		}
		t.Links = append(t.Links, l)
	}
	for i := range f.Works {
		w := &f.Works[i]
		if w.Named != "" && len(w.Links) > 0 {
			l := &w.Links[0]
			l.Evidence = strings.TrimSuffix("of cluster "+w.Cluster+" "+w.Named+"; "+l.Evidence, "; ")
		}
		t.Links = append(t.Links, w.Links...)
		switch {
		case w.Unknown != "":
			t.end(causes.WorkNotSeen, w.Unknown, "name the cluster with --cluster")
		case len(w.Links) > 0 && w.Links[0].Missing:
			t.end(causes.WorksMissing, w.missing(),
				Command(KindCluster, "kubectl spokelet why cluster {name}", "{name}", w.Cluster))
		}
	}
	return t
}

// end says why the way ends early.
func (t *Trace) end(code causes.Code, why, next string) {
	t.Problem = &Problem{
		Code: code, Title: causes.Titles()[code], Kind: strings.ToLower(t.Kind), Namespace: t.Namespace, Name: t.Name,
		Message: why, Next: next,
	}
}

// keeper names another program that says of an object that it keeps it; empty for none.
func keeper(o fleet.Traced) string {
	if release := o.Metadata.Annotations["meta.helm.sh/release-name"]; release != "" {
		return "release " + release + " of Helm"
	}
	if by := o.Metadata.Labels["app.kubernetes.io/managed-by"]; by != "" {
		return "labelled as managed by " + by
	}
	return ""
}

// untraced says of the last object that is known that no work applied it.
func untraced(o fleet.Traced) string {
	what := message.Object(o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	if len(o.Metadata.Owners) > 0 {
		owner := o.Metadata.Owners[0]
		return fmt.Sprintf("no AppliedManifestWork has %s, which %s %s owns", what, owner.Kind, owner.Name)
	}
	said := fmt.Sprintf("no AppliedManifestWork has %s, and nothing owns it", what)
	if by := keeper(o); by != "" {
		said += "; it is " + by
	}
	if writers := writersOf(o.Metadata.Writers); len(writers) > 0 {
		said += "; " + writers[0].Manager + " wrote it last"
	}
	return said
}

// short shortens a hash or an id.
func short(id string) string { return id[:min(len(id), 12)] }
