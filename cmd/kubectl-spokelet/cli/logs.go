package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// logFlags are the flags of logs.
type logFlags struct {
	spoke

	since                    time.Duration
	tail                     int64
	follow, errors, previous bool
}

// lastErrors reports whether only the last errors are wanted. A log that goes on has no last ones: there the tail is
// one of all lines.
func (f logFlags) lastErrors() bool { return f.errors && f.tail >= 0 && !f.follow }

// podLog is the log of one pod.
type podLog struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Leader reports that the pod holds a Lease of its program.
	Leader bool     `json:"leader"`
	Lines  []string `json:"lines"`
}

// logs returns the command that prints the logs of the hub manager or of an agent.
func (p *Plugin) logs() *cobra.Command {
	var flags logFlags
	c := &cobra.Command{
		Use: "logs (hub | agent)", ValidArgs: []string{"hub", "agent"},
		Short: "Print the logs of the hub manager or of the agent of a cluster",
		Long: "logs prints the logs of the hub manager, the leader first, or of the agent of a managed cluster, of ours or " +
			"of OCM's. The agent is looked for with --spoke-context, or else where the kubeconfig leads. -n names another " +
			"namespace of the hub manager, and --agent-namespace of the agent.",
		Example: "  kubectl spokelet logs hub --since 10m\n  kubectl spokelet logs agent --spoke-context store-077 --errors",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(c.ValidArgs, args[0]) {
				return fmt.Errorf("%w: it is logs hub or logs agent", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if flags.follow && !p.asText() {
				return fmt.Errorf("%w: -f writes text: leave out -f or -o", errUse)
			}
			return p.logged(c.Context(), flags, args[0] == "agent")
		},
	}
	flags.add(c)
	c.Flags().DurationVar(&flags.since, "since", 0, "lines that are not older")
	c.Flags().Int64Var(&flags.tail, "tail", -1,
		"so many of the last lines of each pod, with --errors of its errors; -1 means all")
	c.Flags().BoolVarP(&flags.follow, "follow", "f", false, "go on with lines that are written from now on")
	c.Flags().BoolVar(&flags.errors, "errors", false, "errors only")
	c.Flags().BoolVar(&flags.previous, "previous", false, "the log of the container before it was started again")
	return c
}

// logged prints the logs of the pods of a program.
func (p *Plugin) logged(ctx context.Context, flags logFlags, agent bool) error {
	r, namespace, err := p.placeOfLogs(flags, agent)
	if err != nil {
		return err
	}
	pods, err := podsOf(ctx, r, namespace, agent)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		if len(r.Gaps) > 0 {
			return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
		}
		return p.nothingRuns(r, namespace, agent)
	}
	l := logging{Plugin: p, Reader: r, flags: flags, prefix: len(pods) > 1}
	if err := l.all(ctx, pods); err != nil && ctx.Err() == nil {
		return err
	}
	if r.Lacks("pods/log") {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	return p.writeLogs(r, pods)
}

// placeOfLogs returns where the pods are.
func (p *Plugin) placeOfLogs(flags logFlags, agent bool) (*fleet.Reader, string, error) {
	if p.from != "" {
		return nil, "", fmt.Errorf("%w: a bundle has no logs", errUse)
	}
	if err := p.validOutput(); err != nil {
		return nil, "", err
	}
	if agent && flags.named() {
		r, err := readerOf(p.streaming(flags), true)
		return r, flags.agents, err
	}
	r, err := p.reader()
	if err != nil {
		return nil, "", err
	}
	r.Cluster = agent
	if agent {
		return r, flags.agents, nil
	}
	return r, cmp.Or(*p.config.Namespace, names.NamespaceHub), nil
}

// podsOf finds the pods of the hub manager or of an agent, the leader first, then by name.
func podsOf(ctx context.Context, r *fleet.Reader, namespace string, agent bool) ([]podLog, error) {
	all, err := fleet.Read[corev1.Pod](ctx, r, fleet.Query{Resource: fleet.Pods(), Namespace: namespace})
	if err != nil {
		return nil, err
	}
	var pods []podLog
	for i := range all {
		if isProgram(all[i].Labels["app"], agent) {
			container := firstContainer(&all[i])
			pods = append(pods, podLog{Namespace: namespace, Pod: all[i].Name, Container: container, Lines: []string{}})
		}
	}
	if len(pods) < 2 {
		return pods, nil
	}
	leases, err := fleet.List[fleet.Lease](ctx, r, fleet.Query{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	for i := range leases {
		holder, _, _ := strings.Cut(leases[i].Spec.HolderIdentity, "_")
		for j := range pods {
			pods[j].Leader = pods[j].Leader || pods[j].Pod == holder
		}
	}
	slices.SortFunc(pods, func(a, b podLog) int {
		if a.Leader != b.Leader {
			if a.Leader {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Pod, b.Pod)
	})
	return pods, nil
}

// isProgram says whether label "app" of a pod is that of an agent, or else of a hub manager; of ours or of OCM's.
func isProgram(app string, agent bool) bool {
	if agent {
		return slices.Contains(agentApps(), app)
	}
	ofOCM := strings.HasPrefix(app, "clustermanager-") || strings.HasPrefix(app, "cluster-manager-")
	return app == "spokelet-hub" || ofOCM
}

// nothingRuns says that there are no pods whose logs could be printed.
func (p *Plugin) nothingRuns(r *fleet.Reader, namespace string, agent bool) error {
	code, flag := causes.HubDown, "-n"
	if agent {
		code, flag = causes.AgentDown, "--agent-namespace or --spoke-context"
	}
	problem := report.Problem{
		Code: code, Title: causes.Titles()[code], Kind: "pods", Namespace: namespace,
		Message: "no pod of it is in namespace " + namespace,
		Next: report.Command("", "look elsewhere with "+flag+", or kubectl get deployments -n {namespace}",
			"{namespace}", namespace),
	}
	if done, err := p.encoded(answer{Kind: "logs", Hub: r.Source.Name(), Answer: problem}); done {
		return errors.Join(errProblem, err)
	}
	_, err := fmt.Fprintf(p.Streams.Out, "%s: %s  [%s]\nnext: %s\n", show.Safe(problem.Title), show.Safe(problem.Message),
		problem.Code, show.Safe(problem.Next))
	return errors.Join(errProblem, err)
}

// writeLogs writes what is not text.
func (p *Plugin) writeLogs(r *fleet.Reader, pods []podLog) error {
	if done, err := p.encoded(answer{Kind: "logs", Hub: r.Source.Name(), Answer: pods, Gaps: r.Gaps}); done {
		return err
	}
	if p.output != outputName {
		return nil
	}
	for _, pod := range pods {
		if _, err := fmt.Fprintf(p.Streams.Out, "pod/%s\n", show.Safe(pod.Pod)); err != nil {
			return err
		}
	}
	return nil
}

// logging prints logs, line by line.
type logging struct {
	*Plugin
	*fleet.Reader

	flags  logFlags
	prefix bool
	// mutex keeps the lines of two pods apart.
	mutex sync.Mutex
}

// all prints the logs of pods one after the other, or all at once where they go on.
func (l *logging) all(ctx context.Context, pods []podLog) error {
	if l.output == outputName {
		return nil
	}
	if !l.flags.follow {
		for i := range pods {
			if err := l.one(ctx, &pods[i]); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i := range pods {
		group.Go(func() { errs[i] = l.one(ctx, &pods[i]) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// one prints the log of a pod, or keeps its lines where text is not asked for.
func (l *logging) one(ctx context.Context, pod *podLog) error {
	log, err := l.open(ctx, pod)
	if err != nil || log == nil {
		return err
	}
	defer func() { _ = log.Close() }()
	for line, err := range linesOf(log) {
		if err != nil {
			return fmt.Errorf("reading the log of pod %s: %w: %w", pod.Pod, fleet.ErrClusterUnreachable, err)
		}
		if _, bad := report.ErrorOf(line); l.flags.errors && !bad {
			continue
		}
		if l.asText() && !l.flags.lastErrors() {
			if err := l.line(pod, line); err != nil {
				return err
			}
			continue
		}
		pod.Lines = append(pod.Lines, line)
		if l.flags.lastErrors() && int64(len(pod.Lines)) > l.flags.tail {
			pod.Lines = pod.Lines[1:]
		}
	}
	if !l.asText() {
		return nil
	}
	for _, line := range pod.Lines {
		if err := l.line(pod, line); err != nil {
			return err
		}
	}
	return nil
}

// open opens the log of a pod. Readers note gaps, so that one is opened at a time.
func (l *logging) open(ctx context.Context, pod *podLog) (io.ReadCloser, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	tail := l.flags.tail
	if l.flags.lastErrors() {
		tail = -1 // The API server does not know which lines are errors.
	}
	return l.OpenLog(ctx, fleet.LogOptions{
		Namespace: pod.Namespace, Pod: pod.Pod, Container: pod.Container, Since: l.flags.since, Tail: tail,
		Follow: l.flags.follow, Previous: l.flags.previous,
	})
}

// line prints a line.
func (l *logging) line(pod *podLog, line string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before := ""
	if l.prefix {
		before = "[" + show.Safe(pod.Pod) + "] "
	}
	_, err := fmt.Fprintf(l.Streams.Out, "%s%s\n", before, l.terminal().Line(line))
	return err
}
