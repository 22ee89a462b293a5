package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/unready"
)

// spoke says with which kubeconfig to look into a managed cluster.
type spoke struct {
	context, kubeconfig string
	// agents is the namespace of the agent.
	agents string
}

// spokePatience is how long one request to a managed cluster may take, unless --request-timeout says it.
const spokePatience = "10s"

// add adds the flags to a command.
func (s *spoke) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&s.context, "spoke-context", "", "look into the managed cluster, too, with this context")
	flags.StringVar(&s.kubeconfig, "spoke-kubeconfig", "", "the kubeconfig with that context; empty means that of the hub")
	flags.StringVar(&s.agents, "agent-namespace", names.NamespaceAgent, "the namespace of the agent on the cluster")
}

// named reports whether a managed cluster is to be looked into.
func (s *spoke) named() bool { return s.context != "" || s.kubeconfig != "" }

// flags returns what reads the kubeconfig of a managed cluster.
func (p *Plugin) flags(context, kubeconfig string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.Context, flags.KubeConfig, flags.Timeout = &context, p.config.KubeConfig, p.config.Timeout
	flags.CacheDir = p.config.CacheDir
	if kubeconfig != "" {
		flags.KubeConfig = &kubeconfig
	}
	if patience := spokePatience; *flags.Timeout == "" || *flags.Timeout == "0" {
		flags.Timeout = &patience
	}
	return flags
}

// streaming returns the flags for answers that have no end: the time of a request is not bounded.
func (p *Plugin) streaming(f logFlags) *genericclioptions.ConfigFlags {
	flags := p.flags(f.context, f.kubeconfig)
	flags.Timeout = p.config.Timeout
	return flags
}

// readerOf returns a reader of the API server that flags lead to.
func readerOf(flags *genericclioptions.ConfigFlags, cluster bool) (*fleet.Reader, error) {
	hub, err := hubOf(flags)
	if err != nil {
		return nil, err
	}
	return &fleet.Reader{Source: hub, Cluster: cluster}, nil
}

// look is one look into a managed cluster.
type look struct {
	*fleet.Reader

	side report.ClusterSide
	now  time.Time
	// namespace is that of the agent.
	namespace string
}

// lookInto looks into the managed cluster of what was followed. A cluster that does not answer is a gap, and what was
// seen before is kept.
func (p *Plugin) lookInto(ctx context.Context, s spoke, f followed) (report.ClusterSide, []fleet.Gap, error) {
	r, err := readerOf(p.flags(s.context, s.kubeconfig), true)
	if err != nil {
		return report.ClusterSide{}, nil, err
	}
	l := look{Reader: r, now: p.Now(), namespace: s.agents}
	if p.present != nil { // The hub is a bundle, and the cluster is as it is now.
		l.now = p.present()
	}
	l.side.Cluster, l.side.Lacks = r.Source.Name(), r.Lacks
	l.side.Looked = f.Kind != report.KindCluster
	if _, err = r.Source.Version(ctx); err != nil {
		return report.ClusterSide{}, []fleet.Gap{silent(s, err)}, nil
	}
	err = l.all(ctx, f)
	gaps := r.Gaps
	if err != nil {
		if ctx.Err() != nil || !isUnreached(err) {
			return report.ClusterSide{}, gaps, err
		}
		gaps = append(gaps, silent(s, err))
	}
	return l.side, gaps, nil
}

// silent is the gap of a managed cluster that does not answer, or not this user.
func silent(s spoke, err error) fleet.Gap {
	what := "the managed cluster of context " + cmp.Or(s.context, "of "+s.kubeconfig)
	refused := apierrors.IsUnauthorized(err)
	return fleet.Gap{What: what, Why: err.Error(), Cluster: true, Silent: !refused, Refused: refused}
}

// all looks at everything, until the cluster does not answer.
func (l *look) all(ctx context.Context, f followed) error {
	if l.side.Looked {
		if err := l.records(ctx, f.works); err != nil {
			return err
		}
		if err := l.workloads(ctx, f.works); err != nil {
			return err
		}
	}
	if err := l.secrets(ctx, f); err != nil {
		return err
	}
	agents, err := l.agents(ctx)
	if err != nil {
		return err
	}
	return l.log(ctx, agents)
}

// records reads what the agent recorded of works.
func (l *look) records(ctx context.Context, works []fleet.Work) error {
	if len(works) == 0 {
		return nil
	}
	records, err := fleet.Read[fleet.Record](ctx, l.Reader, fleet.Query{Resource: fleet.Records()})
	if err != nil {
		return err
	}
	l.side.Records = map[string]fleet.Record{}
	for _, record := range records {
		l.side.Records[record.Spec.Work] = record
	}
	for i := range works {
		l.side.Works = append(l.side.Works, works[i].Metadata.Name)
	}
	return nil
}

// maxWorkloads is how many workloads of an object are looked at.
const maxWorkloads = 20

// workloads looks at the Deployments and DaemonSets of works, as their status names them.
func (l *look) workloads(ctx context.Context, works []fleet.Work) error {
	for i := range works {
		for _, m := range works[i].Status.Resources.Manifests {
			target := unready.Target{Kind: m.Resource.Kind, Namespace: m.Resource.Namespace, Name: m.Resource.Name}
			workload := target.Kind == unready.KindDeployment || target.Kind == unready.KindDaemonSet
			if m.Resource.Group != appsv1.GroupName || !workload || len(l.side.Workloads) == maxWorkloads {
				continue
			}
			w, warnings, err := l.workload(ctx, target)
			if err != nil {
				return err
			}
			l.side.Workloads = append(l.side.Workloads, w)
			l.side.Warnings = append(l.side.Warnings, warnings...)
		}
	}
	slices.SortStableFunc(l.side.Warnings, func(a, b fleet.Event) int { return a.Ended().Compare(b.Ended()) })
	return nil
}

// workload looks at a workload, its pods and the warnings about them.
func (l *look) workload(ctx context.Context, target unready.Target) (report.Workload, []fleet.Event, error) {
	w := report.Workload{Target: target}
	q := fleet.Query{Resource: fleet.Deployments(), Namespace: target.Namespace, Name: target.Name}
	var states []unready.State
	if target.Kind == unready.KindDaemonSet {
		q.Resource = fleet.DaemonSets()
		found, err := fleet.Read[appsv1.DaemonSet](ctx, l.Reader, q)
		if err != nil {
			return w, nil, err
		}
		for i := range found {
			states = append(states, unready.OfDaemonSet(&found[i]))
		}
	} else {
		found, err := fleet.Read[appsv1.Deployment](ctx, l.Reader, q)
		if err != nil {
			return w, nil, err
		}
		for i := range found {
			states = append(states, unready.OfDeployment(&found[i]))
		}
	}
	w.Read = !l.LacksObject(q.Resource.Plural, fleet.KeyOf(q.Namespace, q.Name))
	if len(states) == 0 {
		return w, nil, nil
	}
	w.Found, w.State = true, states[0]
	warnings, err := l.judge(ctx, &w)
	return w, warnings, err
}

// judge says why a workload that was found is not ready, and returns the warnings about it and its pods.
func (l *look) judge(ctx context.Context, w *report.Workload) ([]fleet.Event, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.State.Selector)
	if err != nil {
		w.Why = fmt.Sprintf("%s has a selector that cannot be used: %v", w.Target, err)
		return nil, nil
	}
	q := fleet.Query{Resource: fleet.Pods(), Namespace: w.Namespace, Selector: selector.String()}
	pods, err := fleet.Read[corev1.Pod](ctx, l.Reader, q)
	if err != nil {
		return nil, err
	}
	warnings, err := l.warnings(ctx, w.Target, pods)
	if err != nil || w.State.Ready && w.State.Have >= w.State.Wanted {
		return warnings, err
	}
	if len(pods) == 0 && l.Lacks("pods") {
		return warnings, nil
	}
	events := func(pod *corev1.Pod) []corev1.Event {
		var all []corev1.Event
		for i := range warnings {
			if e := &warnings[i]; e.Object.Name == pod.Name {
				all = append(all, corev1.Event{Reason: e.Reason, Message: e.Message, LastTimestamp: metav1.NewTime(e.Ended())})
			}
		}
		return all
	}
	w.Why = unready.Facts{Target: w.Target, State: w.State, Pods: pods, Now: l.now}.Explain(events)
	return warnings, nil
}

// warnings reads the warning Events about a workload, what it makes, and its pods.
func (l *look) warnings(ctx context.Context, target unready.Target, pods []corev1.Pod) ([]fleet.Event, error) {
	q := fleet.Query{Resource: fleet.Events(), Namespace: target.Namespace}
	q.Fields = map[string]string{"type": corev1.EventTypeWarning}
	all, err := fleet.Read[fleet.Event](ctx, l.Reader, q)
	return slices.DeleteFunc(all, func(e fleet.Event) bool {
		made := e.Object.Kind == "ReplicaSet" && strings.HasPrefix(e.Object.Name, target.Name+"-")
		own := e.Object.Kind == target.Kind && e.Object.Name == target.Name
		pod := e.Object.Kind == "Pod" && slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == e.Object.Name })
		return !made && !own && !pod
	}), err
}

// secrets looks whether the Secrets are there that the agent keeps. Their content stays where it is.
func (l *look) secrets(ctx context.Context, f followed) error {
	wanted := []report.Presence{
		{Namespace: l.namespace, Name: names.SecretHub, Of: "the credential for the hub"},
	}
	if f.Kind == report.KindCluster && f.Problem != nil {
		wanted = append(wanted, report.Presence{
			Namespace: l.namespace, Name: names.SecretBootstrap, Of: "the credential to join with",
		})
	}
	if f.addOn != nil {
		namespace := cmp.Or(f.addOn.Status.Namespace, names.NamespaceAgentAddon)
		for _, r := range f.addOn.Status.Registrations {
			if name := secretOf(f.Name, r); name != "" {
				wanted = append(wanted, report.Presence{Namespace: namespace, Name: name, Of: "a credential of the add-on"})
			}
		}
	}
	for _, one := range wanted {
		q := fleet.Query{Resource: fleet.Secrets(), Namespace: one.Namespace, Name: one.Name, Partial: true}
		before := len(l.Gaps)
		found, err := fleet.Read[metav1.PartialObjectMetadata](ctx, l.Reader, q)
		if err != nil {
			return err
		}
		one.Read, one.There = len(l.Gaps) == before, len(found) > 0
		l.side.Secrets = append(l.side.Secrets, one)
	}
	return nil
}

// secretOf names the Secret of a registration of an add-on; empty for one that is not complete.
func secretOf(addOn string, r fleet.Registration) string {
	of := addonv1beta1.RegistrationConfig{Type: addonv1beta1.RegistrationType(r.Type)}
	signer := cmp.Or(r.CustomSigner.SignerName, r.SignerName)
	if of.Type == "" && signer == kubeSigner {
		of.Type = addonv1beta1.KubeClient
	}
	if of.Type == "" || of.Type == addonv1beta1.CustomSigner {
		of.Type, of.CustomSigner = addonv1beta1.CustomSigner, &addonv1beta1.CustomSignerConfig{SignerName: signer}
	}
	return csr.AddonSecretName(addOn, of)
}

// kubeSigner is the signer of credentials for the hub.
const kubeSigner = "kubernetes.io/kube-apiserver-client"

// agentApps are the values of the label "app" of agents, of ours and of OCM's.
func agentApps() []string {
	return []string{"klusterlet-agent", "klusterlet-registration-agent", "klusterlet-manifestwork-agent"}
}

// agents looks at the Deployments of the agent, and returns its pods.
func (l *look) agents(ctx context.Context) ([]corev1.Pod, error) {
	selector := "app in (" + strings.Join(agentApps(), ",") + ")"
	q := fleet.Query{Resource: fleet.Deployments(), Namespace: l.namespace, Selector: selector}
	found, err := fleet.Read[appsv1.Deployment](ctx, l.Reader, q)
	if err != nil {
		return nil, err
	}
	l.side.AgentNamespace = l.namespace
	for i := range found {
		w := report.Workload{Read: true, Found: true, State: unready.OfDeployment(&found[i])}
		w.Target = unready.Target{Kind: unready.KindDeployment, Namespace: found[i].Namespace, Name: found[i].Name}
		if w.State.Have < w.State.Wanted {
			if _, err := l.judge(ctx, &w); err != nil {
				return nil, err
			}
		}
		l.side.Agents = append(l.side.Agents, w)
	}
	q.Resource = fleet.Pods()
	return fleet.Read[corev1.Pod](ctx, l.Reader, q)
}

const (
	// logLines are how many of the last lines of a log are looked at, and logErrors how many errors of it are evidence.
	logLines, logErrors = 400, 3
	// logAge is how old they are at most.
	logAge = 30 * time.Minute
)

// log reads the errors in the last lines of the log of the newest pod of the agent.
func (l *look) log(ctx context.Context, pods []corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	log, err := l.OpenLog(ctx, fleet.LogOptions{
		Namespace: newest.Namespace, Pod: newest.Name, Container: firstContainer(&newest), Tail: logLines, Since: logAge,
	})
	if err != nil || log == nil {
		return err
	}
	defer func() { _ = log.Close() }()
	l.side.Log = newest.Name
	for line, err := range linesOf(log) {
		if err != nil {
			return fmt.Errorf("reading the log of pod %s: %w: %w", newest.Name, fleet.ErrClusterUnreachable, err)
		}
		if text, bad := report.ErrorOf(line); bad {
			l.side.Errors = append(l.side.Errors, text)
		}
	}
	l.side.Errors = l.side.Errors[max(0, len(l.side.Errors)-logErrors):]
	return nil
}
