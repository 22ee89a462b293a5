package definition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/pause"
)

// Name is the reporting controller of Events.
const Name = "hub.definition"

const (
	// shortRetry and longRetry bound the delay after a problem; foreignRecheck is the interval of probes of the webhook of
	// another client.
	shortRetry, longRetry, foreignRecheck = 500 * time.Millisecond, 15 * time.Second, time.Minute
	// propagationTime is how long an API server may take to follow a change of a conversion. Until then, its answers prove
	// little.
	propagationTime = time.Second
)

// Keeper maintains the conversion of definitions, in every replica.
type Keeper struct {
	// Client reads and writes definitions and add-ons, without a cache.
	Client client.WithWatch
	// Recorder records Events, which only the leader does: Elected is closed when this process leads.
	Recorder events.EventRecorder
	Elected  <-chan struct{}
	// Clock is the clock of a pass.
	Clock clock.Clock
	// Kinds are the definitions; the first is that of ManagedClusterAddOns, which is probed.
	Kinds []Kind
	// Write reports whether definitions may be changed.
	Write bool
	Webhook

	// Findings are recorded when the process becomes the leader.
	Findings []Finding

	readiness
	observations
}

// Webhook is our webhook, as far as the keeper needs it.
type Webhook struct {
	// Ours returns where the API server finds our webhook; nil while there is none.
	Ours func() *apiextensionsv1.WebhookClientConfig
	// Silent returns why our webhook does not answer; nil when it does.
	Silent func() error
	// Refresh reads again what Ours returns, and Changed returns a channel that is closed when that changes.
	Refresh func(context.Context) error
	Changed func() <-chan struct{}
}

// readiness is the result of the last check.
type readiness struct {
	mu       sync.Mutex
	problems []string
	checked  bool
	// depends reports whether a definition names our webhook.
	depends bool
}

// observations are what the keeper remembers between two checks. Only the goroutine of Start changes them.
type observations struct {
	watches map[string]watched
	wake    chan struct{}
	states  map[string]*state
	// asked is the resource version at which conversion by our webhook was last proven; as long as it stays, there is no
	// further probe.
	asked string
	pause time.Duration
	// seen are the resource versions of all definitions; since is when they were first seen.
	seen  string
	since time.Time
}

// state is the state of one definition.
type state struct {
	// reported is the problem in the last Event.
	reported string
	// put counts how often our webhook was set without staying for resetAfter; at is the last time.
	put int
	at  time.Time
	// version is the resource version before our last write; ours reports whether our webhook was set since.
	version string
	ours    bool
}

// NeedLeaderElection returns false: every replica must know whether it is ready.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start checks the definitions on every change until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	k.wake, k.watches, k.states = make(chan struct{}, 1), map[string]watched{}, map[string]*state{}
	for _, kind := range k.Kinds {
		one, err := follow(ctx, k.Client, kind.Name, k.trigger)
		if err != nil {
			return err
		}
		k.watches[kind.Name] = one
		k.states[kind.Name] = &state{}
	}
	elected := k.Elected
	for {
		changed := k.Changed()
		wait := k.check(ctx)
		timer := k.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-k.wake:
		case <-changed:
		case <-elected:
			elected = nil
			for _, finding := range k.Findings {
				k.event(finding)
			}
		case <-timer.C():
		}
		timer.Stop()
	}
}

// trigger starts a check.
func (k *Keeper) trigger() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Ready returns why the API server does not convert; nil when it does.
func (k *Keeper) Ready() error {
	k.mu.Lock()
	checked, depends, problems := k.checked, k.depends, k.problems
	k.mu.Unlock()
	switch {
	case !checked:
		return errors.New("the conversion of add-ons was not looked at yet")
	case len(problems) > 0:
		return errors.New(strings.Join(problems, "; "))
	}
	if depends {
		if err := k.Silent(); err != nil {
			k.trigger()
			return fmt.Errorf("the conversion webhook of this hub manager does not answer: %w", err)
		}
	}
	return nil
}

// check judges all definitions and acts. It returns the delay until the next check, unless something changes before.
func (k *Keeper) check(ctx context.Context) time.Duration {
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for name, w := range k.watches {
		crd, err := w.get(name)
		if err != nil || !w.synced() {
			k.conclude([]string{"definition " + name + " was not read yet, or may not be read"}, false, false)
			return shortRetry
		}
		if crd != nil {
			crds[name] = crd
		}
	}
	ours := k.ours(ctx, crds)
	propagating := k.propagating(crds)
	first := k.probe(ctx, crds, ours, propagating > 0)
	problems, recheck := []string(nil), false
	depends := k.dependsOn(crds, ours)
	pause := longRetry
	for _, kind := range k.Kinds {
		crd := crds[kind.Name]
		facts := Facts{Kind: kind, Ours: ours, Write: k.Write, Silent: text(k.Silent()), Sibling: depends}
		if crd != nil {
			facts.Served, facts.Conversion = versions(crd), crd.Spec.Conversion
			facts.Probe = k.probeOf(ctx, crd, crds[k.Kinds[0].Name], first)
		}
		verdict := Decide(facts)
		if verdict.Announce {
			if wait := k.put(ctx, crd, ours); wait > 0 {
				pause = min(pause, wait)
			} else {
				pause = 0
			}
		}
		if verdict.Problem != "" || propagating <= 0 {
			k.recordProblem(crd, verdict)
		}
		recheck = recheck || verdict.Recheck
		if verdict.Problem != "" {
			problems = append(problems, verdict.Problem)
		}
	}
	if len(problems) == 0 && propagating > 0 {
		k.conclude([]string{"the definitions have had their webhook for a moment only"}, true, depends)
		return propagating
	}
	k.conclude(problems, true, depends)
	return k.next(problems, recheck, pause)
}

// propagating returns how long the API server may still convert by former definitions.
func (k *Keeper) propagating(crds map[string]*apiextensionsv1.CustomResourceDefinition) time.Duration {
	now, seen := k.Clock.Now(), ""
	for _, kind := range k.Kinds {
		if crd := crds[kind.Name]; crd != nil && len(versions(crd)) > 1 {
			seen += " " + crd.ResourceVersion
		}
	}
	if seen != k.seen {
		k.seen, k.since = seen, now
	}
	if seen == "" {
		return 0
	}
	return k.since.Add(propagationTime).Sub(now)
}

// dependsOn reports whether a definition names our webhook, and records which do.
func (k *Keeper) dependsOn(
	crds map[string]*apiextensionsv1.CustomResourceDefinition, ours *apiextensionsv1.WebhookClientConfig,
) bool {
	depends := false
	for name, crd := range crds {
		if SameWebhook(crd.Spec.Conversion, ours) {
			k.states[name].ours, depends = true, true
		}
	}
	return depends
}

// next returns the delay until the next check.
func (k *Keeper) next(problems []string, recheck bool, longest time.Duration) time.Duration {
	if len(problems) == 0 {
		k.pause = 0
		if recheck {
			return foreignRecheck
		}
		return time.Duration(1<<63 - 1)
	}
	k.pause = pause.Growing{First: shortRetry, Last: min(longest, longRetry)}.Next(k.pause)
	return max(k.pause, shortRetry)
}

func (k *Keeper) conclude(problems []string, checked, depends bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problems, k.checked, k.depends = problems, checked || len(problems) > 0, depends
}

// ours returns the address and CA of our webhook. If a definition names our address with another CA, it first reads the
// certificate again, because another replica may have renewed it.
func (k *Keeper) ours(
	ctx context.Context, crds map[string]*apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.WebhookClientConfig {
	ours := k.Ours()
	for _, crd := range crds {
		have := webhookOf(crd.Spec.Conversion)
		if ours == nil || have == nil || address(have) != address(ours) || SameWebhook(crd.Spec.Conversion, ours) {
			continue
		}
		if err := k.Refresh(ctx); err != nil {
			ctrl.LoggerFrom(ctx).WithName(Name).Error(err, "reading the certificate of the webhook again")
		}
		return k.Ours()
	}
	return ours
}

// probe probes the conversion, unless our webhook was proven since the last change.
func (k *Keeper) probe(
	ctx context.Context, crds map[string]*apiextensionsv1.CustomResourceDefinition,
	ours *apiextensionsv1.WebhookClientConfig, propagating bool,
) Probe {
	crd := crds[k.Kinds[0].Name]
	if crd == nil || webhookOf(crd.Spec.Conversion) == nil {
		return Probe{Message: "nobody was asked"}
	}
	mine := SameWebhook(crd.Spec.Conversion, ours)
	if mine && k.Silent() != nil {
		k.asked = ""
		return Probe{Message: "nobody was asked"}
	}
	if mine && k.asked == crd.ResourceVersion {
		return Probe{Answer: Converted}
	}
	probe := k.ask(ctx)
	k.asked = ""
	if probe.Answer == Converted && !propagating {
		k.asked = crd.ResourceVersion
	}
	return probe
}

// probeOf returns the probe of a definition: that of the first one if the same webhook converts both.
func (k *Keeper) probeOf(ctx context.Context, crd, first *apiextensionsv1.CustomResourceDefinition, said Probe) Probe {
	client := webhookOf(crd.Spec.Conversion)
	if client == nil || len(versions(crd)) < 2 || (first != nil && SameWebhook(first.Spec.Conversion, client)) {
		return said
	}
	return k.list(ctx, crd.Spec.Names.Kind)
}

// put sets our webhook in a definition, or returns how long to wait before that.
func (k *Keeper) put(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, ours *apiextensionsv1.WebhookClientConfig,
) time.Duration {
	s, now := k.states[crd.Name], k.Clock.Now()
	if s.put > 0 && now.Sub(s.at) > resetAfter {
		s.put = 0
	}
	if s.version == crd.ResourceVersion {
		return shortRetry // The watch has not shown yet what we wrote.
	}
	if left := s.at.Add(Pause(s.put)).Sub(now); s.put > 0 && left > 0 {
		return left
	}
	before, setter := crd.Spec.Conversion, Setter(crd.ManagedFields, managerConversion, managerSchema)
	s.version = crd.ResourceVersion
	err := announce(ctx, k.Client, crd.DeepCopy(), ours)
	switch {
	case apierrors.IsConflict(err):
		return 0 // The watch brings what changed meanwhile.
	case err != nil:
		s.version = ""
		ctrl.LoggerFrom(ctx).WithName(Name).Error(err, "the definitions do not name the webhook that converts add-ons")
		return longRetry
	}
	s.put, s.at = s.put+1, now
	said := fmt.Sprintf("the hub manager put its webhook at %s into spec.conversion, where %s was", address(ours),
		Describe(before))
	if setter != "" {
		said += ", set by field manager " + setter
	}
	finding := Finding{Definition: crd, Type: corev1.EventTypeNormal, Reason: "ConversionAnnounced", Message: said}
	if s.ours {
		finding.Type, finding.Reason = corev1.EventTypeWarning, "ConversionOverruled"
		finding.Message = fmt.Sprintf("%s; it had its webhook there before, and the pauses until it puts it back grow to "+
			"%s: have the client that applies this definition leave spec.conversion out", said, longestPause)
	}
	s.ours = true
	ctrl.LoggerFrom(ctx).WithName(Name).Info(finding.Message, "definition", crd.Name)
	k.event(finding)
	return 0
}

// versions returns the versions that a definition serves.
func versions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	served := []string{}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			served = append(served, version.Name)
		}
	}
	return served
}

// text returns the message of an error.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
