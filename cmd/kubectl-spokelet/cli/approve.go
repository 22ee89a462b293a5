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
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// approve returns the command that accepts clusters and approves their requests. It prints each write.
func (p *Plugin) approve() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "approve (cluster NAME | csr NAME)",
		Short: "Accept a cluster and approve the requests of its agent, or approve one request",
		Long: "approve cluster sets spec.hubAcceptsClient of the ManagedCluster, and approves the certificate requests of " +
			"its agent that wait for a person. approve csr approves one request. A request whose content is not exactly " +
			"that of an agent of the cluster that its label names is never approved, nor is one that the agent of another " +
			"cluster made: what it asks for is shown, and kubectl certificate approve is the way for those who want it. Where " +
			"requests of several agents or users wait for one cluster, none is approved: name one with approve csr. Each " +
			"write is printed; --dry-run prints them alone.",
		Example: "  kubectl spokelet approve cluster store-201 --dry-run",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains([]string{report.KindCluster, report.KindRequest}, args[0]) {
				return fmt.Errorf("%w: it is %s", errUse, c.Use)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if p.from != "" {
				return fmt.Errorf("%w: a bundle cannot be written to", errUse)
			}
			return p.approved(c.Context(), args[0], args[1], dry)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be written, and write nothing")
	return c
}

// approved reads what waits, and prints and carries out the writes.
func (p *Plugin) approved(ctx context.Context, kind, name string, dry bool) error {
	hub, err := hubOf(p.config)
	if err = errors.Join(p.validOutput(), err); err != nil {
		return err
	}
	r := &fleet.Reader{Source: hub}
	var edits []sentence
	if kind == report.KindCluster {
		edits, err = acceptance(ctx, r, name)
	} else {
		edits, err = approvals(ctx, r, fleet.Query{Name: name}, p.Now())
	}
	if err == nil && kind == report.KindCluster {
		var of []sentence
		of, err = approvals(ctx, r, fleet.Query{Labels: map[string]string{names.LabelClusterName: name}}, p.Now())
		edits = append(edits, of...)
	}
	switch {
	case err != nil:
		return err
	case len(r.Gaps) > 0:
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	case len(edits) == 0 && p.asText():
		_, err := fmt.Fprintln(p.Streams.Out, "nothing waits for a person")
		return err
	}
	if kind == report.KindCluster && !dry {
		if err := mayApprove(ctx, hub, edits); err != nil {
			return err
		}
	}
	return p.carryOut(ctx, hub, edits, dry)
}

// mayApprove asks the hub whether the requests of a cluster can be approved, before that is accepted: a person who may
// accept clusters and not approve requests would leave one that is accepted and cannot join.
func mayApprove(ctx context.Context, hub *fleet.Hub, edits []sentence) error {
	for _, edit := range edits {
		if edit.refused() || edit.Resource != fleet.ResourceOf[fleet.Request]() {
			continue
		}
		if err := carry(ctx, hub, edit, true); err != nil {
			return fmt.Errorf("nothing was written: %w", err)
		}
	}
	return nil
}

// sentence is a write, with what is said about it; a write without operations is one that is refused.
type sentence struct {
	fleet.Edit

	says string
	// asker is the agent and the user of a request, and age is how old that is.
	asker, age string
}

// refused reports whether nothing is written.
func (s sentence) refused() bool { return len(s.Operations) == 0 && s.New == nil }

// written is one write of approve, as programs read it.
type written struct {
	// Object is its kind and name, as "-o name" writes it.
	Object string `json:"object"`
	// Says is what was done, or why it was not.
	Says    string `json:"says"`
	Refused bool   `json:"refused,omitempty"`
	DryRun  bool   `json:"dryRun,omitempty"`
}

// carryOut carries out writes, and prints each. Programs get them all at once, also those before one that failed.
func (p *Plugin) carryOut(ctx context.Context, hub *fleet.Hub, edits []sentence, dry bool) error {
	done, named, refused := []written{}, []string{}, false
	var failed error
	for _, edit := range edits {
		one := written{Object: kindOf(edit.Resource) + "/" + edit.Name, Says: edit.says, DryRun: dry}
		if one.Refused = edit.refused(); one.Refused {
			refused = true
		} else if failed = carry(ctx, hub, edit, dry); failed != nil {
			break
		} else {
			named = append(named, one.Object)
		}
		done = append(done, one)
		if !p.asText() {
			continue
		}
		said := show.Safe(edit.says)
		if dry && !one.Refused {
			said += " (dry run)"
		}
		if _, err := fmt.Fprintln(p.Streams.Out, said); err != nil {
			return err
		}
	}
	if _, err := p.encoded(answer{Kind: "approve", Hub: hub.Name(), Answer: done, names: named}); err != nil {
		return errors.Join(failed, err)
	}
	if failed == nil && refused {
		return errProblem
	}
	return failed
}

// carry carries out one write.
func carry(ctx context.Context, hub *fleet.Hub, edit sentence, dry bool) error {
	err := hub.Write(ctx, edit.Edit, dry)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %s: %w", errBlind, edit.says, err)
	case err != nil:
		return fmt.Errorf("%w: %s: %w", errProblem, edit.says, err)
	}
	return nil
}

// kindOf is the kind of a resource that approve writes, as answers name it.
func kindOf(r fleet.Resource) string {
	switch r {
	case fleet.ResourceOf[fleet.Cluster]():
		return report.KindCluster
	case addOnPolicies():
		return "addonpolicy"
	}
	return report.KindRequest
}

// acceptance returns the write that accepts a cluster; none for one that is accepted.
func acceptance(ctx context.Context, r *fleet.Reader, name string) ([]sentence, error) {
	cluster, err := fleet.Get[fleet.Cluster](ctx, r, "", name)
	switch {
	case err != nil:
		return nil, err
	case cluster == nil && len(r.Gaps) == 0:
		return nil, fmt.Errorf("%w: there is no ManagedCluster %s", errUse, name)
	case cluster == nil, cluster.Spec.HubAcceptsClient:
		return nil, nil
	case cluster.Metadata.Deleting():
		return nil, fmt.Errorf("%w: ManagedCluster %s is being deleted", errUse, name)
	}
	return []sentence{{
		says: "ManagedCluster " + name + ": spec.hubAcceptsClient is true now",
		Edit: fleet.Edit{
			Resource: fleet.ResourceOf[fleet.Cluster](), Name: name,
			Operations: []fleet.Operation{
				{Op: "test", Path: "/metadata/uid", Value: cluster.Metadata.UID},
				{Op: "add", Path: "/spec/hubAcceptsClient", Value: true},
			},
		},
	}}, nil
}

// approvals returns the writes that approve the requests of clusters which wait for a person.
func approvals(ctx context.Context, r *fleet.Reader, q fleet.Query, now time.Time) ([]sentence, error) {
	q.Resource = fleet.ResourceOf[fleet.Request]()
	raw, err := fleet.Raw(ctx, r, q)
	if err != nil {
		return nil, err
	}
	if q.Name != "" && len(raw) == 0 && len(r.Gaps) == 0 {
		return nil, fmt.Errorf("%w: there is no certificate request %s", errUse, q.Name)
	}
	var edits []sentence
	for _, one := range raw {
		var request certificatesv1.CertificateSigningRequest
		if err := json.Unmarshal(one, &request); err != nil {
			return nil, fmt.Errorf("decoding a certificate request: %w", err)
		}
		if edit := approval(&request, q.Name != "", now); edit != nil {
			edits = append(edits, *edit)
		}
	}
	return oneAsker(edits), nil
}

// oneAsker refuses all approvals where they are for more than one agent, or asked for by more than one user: who has a
// bootstrap credential may ask for the identity of a cluster that waits, and a person has to say which one it is.
func oneAsker(edits []sentence) []sentence {
	askers := map[string]bool{}
	for _, edit := range edits {
		if len(edit.Operations) > 0 {
			askers[edit.asker] = true
		}
	}
	if len(askers) < 2 {
		return edits
	}
	for i := range edits {
		edit := &edits[i]
		if len(edit.Operations) == 0 {
			continue
		}
		next := "approve the right one by its name, and deny the others"
		if report.IsPlainName(edit.Name) {
			next = "approve it by kubectl spokelet approve csr " + edit.Name +
				", or deny it by kubectl certificate deny " + edit.Name
		}
		edit.Operations = nil
		edit.says = fmt.Sprintf("request %s is not approved, because several agents or users ask for this cluster: "+
			"%s; %s", edit.Name, edit.asker, next)
		if edit.age != "" {
			edit.says += "; it is " + edit.age + " old"
		}
	}
	return edits
}

// approval returns the write that approves a request, or why it is not approved; nil for one that does not wait for a
// person.
func approval(request *certificatesv1.CertificateSigningRequest, named bool, now time.Time) *sentence {
	decided := slices.ContainsFunc(request.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
		})
	verdict := approve.JudgeCluster(request, approve.Trust{}, false)
	if decided || verdict.Decision == approve.DecisionIgnore && !named {
		return nil
	}
	who := fmt.Sprintf("request %s of user %s", request.Name, request.Spec.Username)
	if verdict.Reason != approve.ReasonAwaitingApproval { // The hub refuses it, and a person would not be waited for.
		return &sentence{says: who + " is not approved: " + verdict.Message}
	}
	path, value := "/status/conditions", any([]any{approvedAt(now)})
	operations := []fleet.Operation{{Op: "test", Path: "/metadata/uid", Value: request.UID}}
	if len(request.Status.Conditions) > 0 {
		path, value = path+"/-", approvedAt(now)
	}
	age := ""
	if made := fleet.Known(request.CreationTimestamp.Time); !made.IsZero() {
		age = duration.HumanDuration(max(now.Sub(made), 0))
	}
	return &sentence{
		asker: fmt.Sprintf("agent %s of user %s", verdict.Expected.User, request.Spec.Username), age: age,
		says: fmt.Sprintf("%s is approved: a certificate for user %s, groups %s", who, verdict.Expected.User,
			strings.Join(verdict.Expected.Groups, " ")),
		Edit: fleet.Edit{
			Resource: fleet.ResourceOf[fleet.Request](),
			Name:     request.Name, Part: "approval",
			Operations: append(operations, fleet.Operation{Op: "add", Path: path, Value: value}),
		},
	}
}

// approvedAt is the condition of a request that a person approved.
func approvedAt(now time.Time) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByKubectlSpokelet",
		Message: "A person approved the request by kubectl spokelet approve.", LastUpdateTime: metav1.NewTime(now),
	}
}
