package neighbours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/klusterlet"
)

// mode is a Klusterlet in one of its modes, with nothing set. Its managed cluster has another agent, of other names.
func mode(f *suite.Fleet, name string, hosted, singleton bool) suite.DropIn {
	spec := f.Rendered(name, "agents-of-"+name)
	spec.Name, spec.ManagedNamespace = "klusterlet-"+name, "accounts-of-"+name
	spec.Hosted, spec.Singleton, spec.Settings = hosted, singleton, klusterlet.None
	d := suite.DropIn{Klusterlet: spec, On: f.Managed(), KeepsDefinitions: true}
	if hosted {
		d.Namespace, d.On = d.Name, f.Hub() // In hosted mode the namespace has the name of the Klusterlet.
	}
	return d
}

func (p *play) klusterletDefault(ctx context.Context, s *suite.Session) error {
	_, err := releases(ctx, s, mode(s.Fleet, "parts", false, false))
	return err
}

func (p *play) klusterletSingleton(ctx context.Context, s *suite.Session) error {
	_, err := releases(ctx, s, mode(s.Fleet, "single", false, true))
	return err
}

func (p *play) klusterletSingletonHosted(ctx context.Context, s *suite.Session) error {
	_, err := releases(ctx, s, mode(s.Fleet, "single-hosted", true, true))
	return err
}

// klusterletHosted goes on with a hosted add-on, for which the last release reports the hosting cluster.
func (p *play) klusterletHosted(ctx context.Context, s *suite.Session) error {
	d, err := releases(ctx, s, mode(s.Fleet, "hosted", true, false))
	if err != nil {
		return err
	}
	return p.lantern(ctx, s, d)
}

// releases runs a Klusterlet without settings, then with all that OCM 1.2 and 1.3 have, then with those that are
// announced for 1.4, as it is when its operator is upgraded. Each time a work is applied, and no other certificate is
// requested. It returns the last one.
func releases(ctx context.Context, s *suite.Session, d suite.DropIn) (suite.DropIn, error) {
	if err := d.Run(ctx, s, d.Cluster+"-without-settings"); err != nil {
		return d, fmt.Errorf("without settings: %w", err)
	}
	requests, err := s.Fleet.Requests(ctx, d.Cluster)
	if err != nil {
		return d, err
	}
	for _, settings := range []klusterlet.Settings{klusterlet.All, klusterlet.Announced} {
		d.Settings = settings
		if d.Hosted && settings == klusterlet.Announced {
			d.HostingCluster = homeName
		}
		if err := upgrade(ctx, s, d); err != nil {
			return d, fmt.Errorf("with settings %d: %w", settings, err)
		}
	}
	after, err := s.Fleet.Requests(ctx, d.Cluster)
	if err == nil && after != requests {
		err = fmt.Errorf("%d certificates were requested by other settings", after-requests)
	}
	if err != nil {
		return d, err
	}
	return d, toldUnknown(ctx, s, d)
}

// upgrade gives the Deployments of a Klusterlet other settings, and applies a work.
func upgrade(ctx context.Context, s *suite.Session, d suite.DropIn) error {
	if err := d.Rights(ctx, s.Fleet); err != nil {
		return err
	}
	objects, err := d.Objects()
	if err != nil {
		return err
	}
	if err := suite.AddFlags(objects, fmt.Sprintf("--metrics-bind-address=:%d", metricsPort)); err != nil {
		return err
	}
	if err := suite.Apply(ctx, d.On, objects); err != nil {
		return err
	}
	if err := d.Check(ctx); err != nil {
		return err
	}
	if err := s.ApplyWork(ctx, d.Cluster, fmt.Sprintf("%s-settings-%d", d.Cluster, d.Settings)); err != nil {
		return err
	}
	return s.Fleet.WaitClusterAvailable(ctx, d.Cluster)
}

// metricsPort is where agents serve metrics in this suite. No Klusterlet can say so.
const metricsPort = 9090

// toldUnknown checks that each pod of a Klusterlet tells what it does not know: by an Event, a metric, and in /readyz.
func toldUnknown(ctx context.Context, s *suite.Session, d suite.DropIn) error {
	deployments, err := d.Deployments()
	if err != nil {
		return err
	}
	for _, deployment := range deployments {
		err := cluster.Until(ctx, "Deployment "+deployment.Name+" to tell what it does not know",
			func(ctx context.Context) error { return podTells(ctx, d, deployment) })
		if err != nil {
			return err
		}
	}
	s.Note("pods that told the flag and the gate that they do not know: %d", len(deployments))
	return nil
}

func podTells(ctx context.Context, d suite.DropIn, deployment *appsv1.Deployment) error {
	pod, err := suite.Pod(ctx, d.On, d.Namespace, suite.App(deployment))
	if err != nil {
		return err
	}
	ready, err := d.On.Ask(ctx, d.Namespace, pod.Name, "https", 8443, "/readyz?verbose")
	if err != nil {
		return err
	}
	numbers, err := d.On.Ask(ctx, d.Namespace, pod.Name, "http", metricsPort, "/metrics")
	if err != nil {
		return err
	}
	var events eventsv1.EventList
	if err := d.On.Client.List(ctx, &events, client.InNamespace(d.Namespace)); err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	note := ""
	for _, event := range events.Items {
		if event.Reason == "UnknownSettings" && event.Regarding.Name == pod.Name {
			note = event.Note
		}
	}
	const counted = `spokelet_foreign_settings{state="unknown"} 2`
	var errs []error
	if !strings.Contains(numbers, counted) {
		errs = append(errs, fmt.Errorf("the metrics of pod %s lack %s", pod.Name, counted))
	}
	for _, unknown := range []string{klusterlet.UnknownFlag, "--feature-gates=" + klusterlet.UnknownGate} {
		if !strings.Contains(ready, unknown+" has no effect") {
			errs = append(errs, fmt.Errorf("/readyz of pod %s does not tell %s: %s", pod.Name, unknown, ready))
		}
		if !strings.Contains(note, unknown) {
			errs = append(errs, fmt.Errorf("the Event of pod %s does not tell %s: %q", pod.Name, unknown, note))
		}
	}
	return errors.Join(errs...)
}
