package twoclusters

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	pacedName, networkName, gatewayName = "paced", "network", "gateway"
	// quiet is how long a pod that must not change is watched.
	quiet = 15 * time.Second
)

//go:embed addons/paced.yaml
var pacedYAML string

// paced is the add-on whose changes policies hold.
type paced struct {
	s    *suite.Session
	name string
}

// newPaced returns the add-on of a name, which goes with the scenario.
func newPaced(s *suite.Session, name string) *paced {
	p := &paced{s: s, name: name}
	s.Cleanup("remove the add-on "+name, func(ctx context.Context) error {
		objects, err := p.objects("v1", s.Fleet.Images().Workload)
		if err != nil {
			return err
		}
		if err := suite.Delete(ctx, s.Fleet.Hub(), objects); err != nil {
			return err
		}
		return cluster.Until(ctx, "the Deployment to be gone", func(ctx context.Context) error {
			return suite.Gone(ctx, s.Fleet.Managed(), object("apps/v1", "Deployment", agentKey(name).Namespace, name))
		})
	})
	return p
}

func (p *paced) objects(version, image string) ([]*unstructured.Unstructured, error) {
	text := strings.NewReplacer("NAME", p.name, "VERSION", version, "IMAGE", image).Replace(pacedYAML)
	return suite.Decode([]byte(text))
}

// apply brings a version to the hub; its image may be one that cannot be pulled.
func (p *paced) apply(ctx context.Context, version, image string) error {
	objects, err := p.objects(version, image)
	if err != nil {
		return err
	}
	return suite.Apply(ctx, p.s.Fleet.Hub(), objects)
}

// has returns why the pod of the add-on does not run in a version; nil when it does.
func (p *paced) has(ctx context.Context, version string) error {
	pod, err := suite.Pod(ctx, p.s.Fleet.Managed(), agentKey(p.name).Namespace, p.name)
	switch {
	case err != nil:
		return err
	case pod.Annotations["version"] != version:
		return fmt.Errorf("pod %s has version %s and not %s", pod.Name, pod.Annotations["version"], version)
	case !cluster.IsReady(pod):
		return fmt.Errorf("pod %s is not ready", pod.Name)
	}
	return nil
}

// arrives waits until the add-on is available in a version.
func (p *paced) arrives(ctx context.Context, version string) error {
	err := cluster.Until(ctx, p.name+" "+version, func(ctx context.Context) error { return p.has(ctx, version) })
	if err != nil {
		return err
	}
	return p.s.Fleet.WaitAddOn(ctx, clusterName, p.name)
}

// says waits until a condition of the add-on has some words, and returns its message.
func (p *paced) says(ctx context.Context, condition string, words ...string) (message string, err error) {
	err = cluster.Until(ctx, "condition "+condition+" to say "+strings.Join(words, ", "), func(ctx context.Context) error {
		addOn, err := p.s.Fleet.AddOn(ctx, clusterName, p.name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, condition)
		if c == nil {
			return errors.New("it is not set")
		}
		message = c.Reason + ": " + c.Message
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("it says %s", message)
			}
		}
		return nil
	})
	if err == nil {
		p.s.Note("%s: %s", condition, message)
	}
	return message, err
}

// put applies a policy or a window, which goes with the scenario.
func put(ctx context.Context, s *suite.Session, text string) error {
	objects, err := suite.Decode([]byte(text))
	if err != nil {
		return err
	}
	hub := s.Fleet.Hub()
	s.Cleanup("delete "+suite.Describe(objects[0]), func(ctx context.Context) error {
		return suite.Delete(ctx, hub, objects)
	})
	return suite.Apply(ctx, hub, objects)
}

// window changes an add-on outside of its window, and waits until the window opens by the clock.
func (p *play) window(ctx context.Context, s *suite.Session) error {
	addOn := newPaced(s, pacedName)
	image := s.Fleet.Images().Workload
	if err := addOn.apply(ctx, "v1", image); err != nil {
		return err
	}
	if err := addOn.arrives(ctx, "v1"); err != nil {
		return err
	}
	opens := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
	err := put(ctx, s, fmt.Sprintf(`{apiVersion: addon.spokelet.io/v1alpha1, kind: MaintenanceWindow,
		metadata: {name: night}, spec: {kind: Allow, schedule: "%d %d * * *", duration: 1h, addOns: [%s]}}`,
		opens.Minute(), opens.Hour(), pacedName))
	if err != nil {
		return err
	}
	if err := addOn.apply(ctx, "v2", image); err != nil {
		return err
	}
	at := opens.Format(time.RFC3339)
	if _, err := addOn.says(ctx, "Configured", "no MaintenanceWindow allows it now; it may begin at "+at); err != nil {
		return err
	}
	until := time.Until(opens)
	looks, err := cluster.During(ctx, until-time.Second, func(ctx context.Context) error { return addOn.has(ctx, "v1") })
	if err != nil {
		return fmt.Errorf("before the window opened: %w", err)
	}
	if err := addOn.arrives(ctx, "v2"); err != nil {
		return err
	}
	s.Note("v1 was there at %d looks in %.0f s, and v2 ran %.1f s after the window opened", looks, until.Seconds(),
		time.Since(opens).Seconds())
	return nil
}

// approve changes an add-on whose policy wants an approval, and approves the content by the name in the condition.
func (p *play) approve(ctx context.Context, s *suite.Session) error {
	addOn := newPaced(s, pacedName)
	image := s.Fleet.Images().Workload
	if err := addOn.apply(ctx, "v1", image); err != nil {
		return err
	}
	if err := addOn.arrives(ctx, "v1"); err != nil {
		return err
	}
	const policy = `{apiVersion: addon.spokelet.io/v1alpha1, kind: AddOnPolicy, metadata: {name: ` + pacedName +
		`}, spec: {approval: PerRollout, approved: [%s]}}`
	if err := put(ctx, s, fmt.Sprintf(policy, "")); err != nil {
		return err
	}
	if err := addOn.apply(ctx, "v2", image); err != nil {
		return err
	}
	said, err := addOn.says(ctx, "Configured", "AddOnPolicy paced does not approve content ")
	if err != nil {
		return err
	}
	if _, err := cluster.During(ctx, quiet, func(ctx context.Context) error { return addOn.has(ctx, "v1") }); err != nil {
		return fmt.Errorf("before the approval: %w", err)
	}
	content := regexp.MustCompile("[0-9a-f]{40}").FindString(said)
	approved := time.Now()
	if err := put(ctx, s, fmt.Sprintf(policy, content)); err != nil {
		return err
	}
	if err := addOn.arrives(ctx, "v2"); err != nil {
		return err
	}
	s.Note("v2 ran %.1f s after the approval", time.Since(approved).Seconds())
	return nil
}

// undo changes an add-on to an image that cannot be pulled, and waits until it is back by itself.
func (p *play) undo(ctx context.Context, s *suite.Session) error {
	addOn := newPaced(s, pacedName)
	if err := addOn.apply(ctx, "v1", s.Fleet.Images().Workload); err != nil {
		return err
	}
	if err := addOn.arrives(ctx, "v1"); err != nil {
		return err
	}
	err := put(ctx, s, `{apiVersion: addon.spokelet.io/v1alpha1, kind: AddOnPolicy, metadata: {name: `+pacedName+
		`}, spec: {onFailure: {action: Undo}}}`)
	if err != nil {
		return err
	}
	changed := time.Now()
	if err := addOn.apply(ctx, "v2", "spokelet/missing:v2"); err != nil {
		return err
	}
	key := agentKey(pacedName)
	err = cluster.Until(ctx, "the Deployment to have v2", func(ctx context.Context) error {
		return hasVersion(ctx, s, key, "v2")
	})
	if err != nil {
		return err
	}
	err = cluster.Until(ctx, "the Deployment to have v1 again", func(ctx context.Context) error {
		return hasVersion(ctx, s, key, "v1")
	})
	if err != nil {
		return err
	}
	s.Note("the Deployment had v1 again %.1f s after v2 was applied, with a progressDeadline of 30 s",
		time.Since(changed).Seconds())
	if _, err := addOn.says(ctx, "addon.spokelet.io/RolloutFailed", "Undone"); err != nil {
		return err
	}
	_, err = cluster.During(ctx, quiet, func(ctx context.Context) error {
		return errors.Join(addOn.has(ctx, "v1"), hasVersion(ctx, s, key, "v1"))
	})
	if err != nil {
		return fmt.Errorf("after the undo: %w", err)
	}
	return nil
}

// hasVersion returns why a Deployment does not have a version.
func hasVersion(ctx context.Context, s *suite.Session, key client.ObjectKey, version string) error {
	var found appsv1.Deployment
	if err := s.Fleet.Managed().Client.Get(ctx, key, &found); err != nil {
		return err
	}
	if has := found.Spec.Template.Annotations["version"]; has != version {
		return fmt.Errorf("it has %s", has)
	}
	return nil
}

// depend installs the add-on gateway, which brings network along and waits for it, and removes both.
func (p *play) depend(ctx context.Context, s *suite.Session) error {
	network, gateway := newPaced(s, networkName), newPaced(s, gatewayName)
	image := s.Fleet.Images().Workload
	objects, err := network.objects("v1", image)
	if err != nil {
		return err
	}
	strategy := map[string]any{"type": "Manual"}
	if err := unstructured.SetNestedMap(objects[1].Object, strategy, "spec", "installStrategy"); err != nil {
		return fmt.Errorf("changing the install strategy: %w", err)
	}
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	err = put(ctx, s, `{apiVersion: addon.spokelet.io/v1alpha1, kind: AddOnPolicy, metadata: {name: `+gatewayName+
		`}, spec: {dependsOn: [{name: `+networkName+`, install: true}]}}`)
	if err != nil {
		return err
	}
	if err := gateway.apply(ctx, "v1", image); err != nil {
		return err
	}
	if _, err := gateway.says(ctx, "Configured", "add-on "+networkName); err != nil {
		return err
	}
	for _, addOn := range []*paced{network, gateway} {
		if err := addOn.arrives(ctx, "v1"); err != nil {
			return err
		}
	}
	var first, second appsv1.Deployment
	managed := s.Fleet.Managed().Client
	if err := errors.Join(managed.Get(ctx, agentKey(networkName), &first), managed.Get(ctx, agentKey(gatewayName),
		&second)); err != nil {
		return err
	}
	if second.CreationTimestamp.Before(&first.CreationTimestamp) {
		return fmt.Errorf("gateway was deployed at %s, before network at %s", second.CreationTimestamp,
			first.CreationTimestamp)
	}
	return removeInOrder(ctx, s, gateway)
}

// removeInOrder removes the add-on gateway. Network, which it brought, goes after it.
func removeInOrder(ctx context.Context, s *suite.Session, gateway *paced) error {
	objects, err := gateway.objects("v1", s.Fleet.Images().Workload)
	if err != nil {
		return err
	}
	if err := s.Fleet.Hub().Client.Delete(ctx, objects[1]); err != nil {
		return fmt.Errorf("deleting the ClusterManagementAddOn: %w", err)
	}
	deployment := func(name string) *unstructured.Unstructured {
		return object("apps/v1", "Deployment", agentKey(name).Namespace, name)
	}
	return cluster.Until(ctx, "both to be gone, gateway first", func(ctx context.Context) error {
		// What is read first may only be gone if what is read later is, too.
		network := suite.Gone(ctx, s.Fleet.Managed(), deployment(networkName))
		left := suite.Gone(ctx, s.Fleet.Managed(), deployment(gatewayName))
		if network == nil && left != nil {
			return fmt.Errorf("%w: network is gone, and gateway is not: %w", cluster.ErrFinal, left)
		}
		return errors.Join(network, left)
	})
}
