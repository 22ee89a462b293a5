package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/unready"
)

// SideCluster is the side of a step that was seen on the managed cluster itself.
const SideCluster = "cluster"

// Workload is a Deployment or a DaemonSet as it is on a cluster.
type Workload struct {
	unready.Target

	// Read reports that it could be looked for, and Found that it is there.
	Read, Found bool
	State       unready.State
	// Why explains why it is not ready; empty where it is, or where that is not known.
	Why string
}

// Presence says of a Secret that it is there; never what is in it.
type Presence struct {
	Namespace, Name string
	// Of says what the Secret is for.
	Of string
	// Read reports that it could be looked for, and There that it is there.
	Read, There bool
}

// ClusterSide is what was seen on a managed cluster about an object of the hub.
type ClusterSide struct {
	// Cluster is the address of the managed cluster.
	Cluster string
	// Looked reports that the workloads of Works were looked for, and Agent that the agent was.
	Looked bool
	// Works are the names of the works, and Records what the agent recorded of them, by name.
	Works     []string
	Records   map[string]fleet.Record
	Workloads []Workload
	// Warnings are the warning Events about the workloads and their pods, the last one last.
	Warnings []fleet.Event
	Secrets  []Presence
	// AgentNamespace is where the agent was looked for; empty where the look ended before that.
	AgentNamespace string
	Agents         []Workload
	// Log names the pod whose log was read; empty for none. Errors are its last lines that are errors.
	Log    string
	Errors []string
	// Lacks reports that a resource, by its plural, could not be read.
	Lacks func(plural string) bool
}

// With adds to a chain what was seen on the managed cluster: steps, and the cause that the hub cannot see.
func (c Chain) With(s ClusterSide) Chain {
	if s.Cluster == "" {
		return c
	}
	c.Looked = s.Cluster
	var steps []Step
	if s.Looked {
		steps = append(steps, s.recorded(), s.running(), s.warned())
	}
	steps = append(steps, s.secrets()...)
	steps = append(steps, s.agent(), s.logged())
	for _, step := range steps {
		if step.Name != "" {
			step.Side = SideCluster
			c.Steps = append(c.Steps, step)
		}
	}
	c.deepen(s)
	return c.mend()
}

// deepen replaces the first cause of a chain by one that only the cluster shows. What the hub says about anything
// earlier in the chain stays.
func (c *Chain) deepen(s ClusterSide) {
	code := causes.Code("")
	if c.Problem != nil {
		code = c.Problem.Code
	}
	found := func(of causes.Code, why string) {
		p := &Problem{Code: of, Title: causes.Titles()[of], Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, Message: why}
		if c.Problem != nil {
			p.Since, p.Reason = c.Problem.Since, c.Problem.Reason
		}
		c.Problem, c.Healthy = p, false
	}
	agents := []causes.Code{"", causes.ClusterSilent, causes.ClusterNotJoined, causes.WorkNotSeen, causes.HealthUnknown}
	if why := cmp.Or(firstWhy(s.Agents), s.scaledDown()); why != "" && slices.Contains(agents, code) {
		found(causes.AgentDown, why)
		return
	}
	gone := len(s.Agents) == 0 && s.AgentNamespace != "" && !s.lacks("deployments")
	if gone && (code == causes.ClusterSilent || code == causes.ClusterNotJoined) {
		found(causes.AgentDown, "there is no Deployment of an agent in namespace "+s.AgentNamespace+" of the cluster")
		return
	}
	if missing := firstMissing(s.Workloads); missing != "" && code == "" {
		found(causes.WorkNotAvailable, missing+" does not exist on the cluster")
		return
	}
	workloads := []causes.Code{
		"", causes.LeaseStopped, causes.LeaseMissing, causes.ProbeFailed, causes.HealthUnknown, causes.WorkNotAvailable,
		causes.RolloutFailed,
	}
	if why := firstWhy(s.Workloads); why != "" && slices.Contains(workloads, code) {
		found(causes.WorkloadNotReady, why)
	}
}

// firstWhy returns why the first workload that is not ready is not; empty where that is not known of any.
func firstWhy(all []Workload) string {
	for i := range all {
		if w := &all[i]; w.Found && !w.State.Ready && w.Why != "" {
			return w.Why
		}
	}
	return ""
}

// firstMissing names the first workload that was looked for and is not there; empty for none.
func firstMissing(all []Workload) string {
	for i := range all {
		if w := &all[i]; w.Read && !w.Found {
			return w.String()
		}
	}
	return ""
}

// scaledDown says that the agent is scaled to zero; empty where it is not. One of several that run is not the agent:
// OCM's operator starts the agent of works when the cluster has joined.
func (s ClusterSide) scaledDown() string {
	why := ""
	for i := range s.Agents {
		w := &s.Agents[i]
		switch {
		case w.State.Have > 0:
			return ""
		case w.Found && w.State.Wanted == 0 && why == "":
			why = w.String() + " is scaled to zero: scale it up"
		}
	}
	return why
}

func (s ClusterSide) lacks(plural string) bool { return s.Lacks != nil && s.Lacks(plural) }

// recorded is the step of what the agent keeps of the works.
func (s ClusterSide) recorded() Step {
	step := Step{Name: "recorded", State: OK}
	switch {
	case s.lacks("appliedmanifestworks"):
		step.State, step.Evidence = Waiting, "AppliedManifestWorks cannot be read"
		return step
	case len(s.Works) == 0:
		return Step{}
	}
	objects := 0
	for _, work := range s.Works {
		record, is := s.Records[work]
		if !is {
			step.State, step.Evidence = Failed, "the agent has no AppliedManifestWork of work "+work
			return step
		}
		objects += len(record.Status.Applied)
		if record.Status.Eviction != nil {
			step.State = Warning
			step.Detail = "the agent is about to remove the objects of work " + work + ", which the hub does not have"
		}
	}
	step.Evidence = fmt.Sprintf("%d objects in AppliedManifestWork of %s", objects, message.List(s.Works, 3, ", "))
	return step
}

// running is the step of the workloads of the works.
func (s ClusterSide) running() Step {
	none := Step{Name: "running", State: Waiting, Evidence: "no Deployment or DaemonSet is known"}
	return running("running", s.Workloads, none)
}

// running is the step of some workloads, or none where there are none.
func running(name string, all []Workload, none Step) Step {
	if len(all) == 0 {
		return none
	}
	step := Step{Name: name, State: OK}
	var less *Workload
	for i := range all {
		w := &all[i]
		switch {
		case !w.Read:
			return Step{Name: name, State: Waiting, Evidence: w.String() + " cannot be read"}
		case !w.Found:
			return Step{Name: name, State: Failed, Evidence: w.String() + " does not exist"}
		case !w.State.Ready:
			return Step{Name: name, State: Failed, Evidence: w.counted(), Detail: w.Why}
		case w.State.Have < w.State.Wanted && less == nil:
			less = w
		}
	}
	step.Evidence = all[0].counted()
	if len(all) > 1 {
		step.Evidence = fmt.Sprintf("%d of %d workloads are ready", len(all), len(all))
	}
	if less != nil {
		step.State, step.Evidence, step.Detail = Warning, less.counted(), less.Why
	}
	return step
}

// counted names a workload with its pods that are ready.
func (w *Workload) counted() string {
	return fmt.Sprintf("%s %d of %d ready", w.Target, w.State.Have, w.State.Wanted)
}

// warned is the step of the Events about the workloads. Warnings about what is ready by now are over.
func (s ClusterSide) warned() Step {
	step := Step{Name: "events", State: OK, Evidence: "no warnings"}
	switch {
	case s.lacks("events"):
		step.State, step.Evidence = Waiting, "Events cannot be read"
		return step
	case len(s.Workloads) == 0:
		return Step{}
	case len(s.Warnings) == 0:
		return step
	}
	last := s.Warnings[len(s.Warnings)-1]
	step.Evidence = fmt.Sprintf("%s of %s", last.Reason,
		message.Object(last.Object.Kind, last.Object.Namespace, last.Object.Name))
	if others := len(s.Warnings) - 1; others > 0 {
		step.Evidence += fmt.Sprintf(", the last of %d warnings", len(s.Warnings))
	}
	ready := func(w Workload) bool { return w.State.Ready || !w.Found }
	if !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return !ready(w) }) {
		return step
	}
	step.State, step.Detail = Warning, last.Message
	return step
}

// secrets are the steps of the Secrets that an agent keeps.
func (s ClusterSide) secrets() []Step {
	steps := make([]Step, 0, len(s.Secrets))
	for _, secret := range s.Secrets {
		step := Step{Name: "secret", State: OK, Evidence: fmt.Sprintf("%s is there, %s", secret.Name, secret.Of)}
		switch {
		case !secret.Read:
			step.State, step.Evidence = Waiting, fmt.Sprintf("whether %s is there cannot be read", secret.Name)
		case !secret.There:
			step.State = Warning
			step.Evidence = fmt.Sprintf("%s is not there, %s", secret.Name, secret.Of)
			step.Detail = "it was looked for in namespace " + secret.Namespace
		}
		steps = append(steps, step)
	}
	return steps
}

// agent is the step of the agent of the cluster.
func (s ClusterSide) agent() Step {
	if s.AgentNamespace == "" {
		return Step{}
	}
	if len(s.Agents) == 0 && s.lacks("deployments") {
		return Step{Name: "agent", State: Waiting, Evidence: "Deployments cannot be read"}
	}
	if why := s.scaledDown(); why != "" {
		return Step{Name: "agent", State: Failed, Evidence: s.Agents[0].counted(), Detail: why}
	}
	return running("agent", s.Agents, Step{
		Name: "agent", State: Warning, Evidence: "no Deployment of an agent in namespace " + s.AgentNamespace,
		Detail: "--agent-namespace names another one",
	})
}

// logged is the step of the log of the agent.
func (s ClusterSide) logged() Step {
	switch {
	case s.lacks("pods/log"):
		return Step{Name: "log", State: Waiting, Evidence: "the log of the agent cannot be read"}
	case s.Log == "":
		return Step{}
	case len(s.Errors) == 0:
		return Step{Name: "log", State: OK, Evidence: "no errors in the last lines of pod " + s.Log}
	}
	step := Step{Name: "log", State: Warning, Evidence: "errors in the last lines of pod " + s.Log}
	for _, line := range s.Errors {
		step.Lines = append(step.Lines, message.Cut(strings.TrimSpace(line), maxLine))
	}
	return step
}

// maxLine is how many bytes of a line of a log are evidence.
const maxLine = 400
