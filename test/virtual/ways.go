package virtual

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/proxy"
)

const (
	// wayAddOn is the add-on of this test, edge the name of what clusters at the edge get besides, and ownConfig the
	// configuration that one cluster has by its own add-on.
	wayAddOn, edge, ownConfig = "way", "edge", "own"
	// wayClusters are how many clusters there are; those with an even number are at the edge.
	wayClusters = 4
)

// way is a hub whose clusters have no agents.
type way struct {
	*World

	// served are the versions of the add-on API, and version draws the one in which people write next.
	served  []string
	version func() string
	// author is the program that has the add-on; nil while a template has it.
	author *author
}

// newWay returns a hub whose manager runs, and where people write the first of the versions that it serves.
func newWay(ctx context.Context, o Options, served ...string) (way, error) {
	w, err := New(ctx, o)
	if err == nil {
		w.way.remember() // a manager that starts again may see the hub as it was before there was anything
		startManager(w)
	}
	return way{World: w, served: served, version: func() string { return served[0] }}, err
}

// startManager starts the hub manager and waits for it. A manager of controller-runtime that is stopped while it starts
// waits in a loop, in which a bubble stands still.
func startManager(w *World) {
	w.manager.start(w.ctx)
	time.Sleep(10 * time.Second)
}

// stop ends the programs of the hub. Lies end before that, because a manager that starts slowly cannot be stopped.
func (w way) stop() {
	if w.way.honest() {
		time.Sleep(startTime)
	}
	w.manager.stop()
	if w.author != nil && w.author.random.IntN(2) == 0 {
		w.stopAuthor()
	}
}

// start starts what stop ended.
func (w way) start() {
	startManager(w.World)
	if w.author != nil {
		w.startAuthor()
	}
}

// lie lets all that the programs of the hub are told be lies until honest ends that.
func (w way) lie(lies proxy.Lies) {
	w.way.lie(lies)
	if w.author != nil {
		w.author.link.lie(lies)
	}
}

func (w way) honest() {
	w.way.honest()
	if w.author != nil {
		w.author.link.honest()
	}
}

// finals holds what people want in the end, in the order in which a person writes it.
func finals() []client.Object {
	all := []client.Object{wayTemplate("v1"), config(wayAddOn, "info"), config(edge, "warn"), config(ownConfig, "debug")}
	for i := range wayClusters {
		all = append(all, wayCluster(i, i%2 == 0))
	}
	return append(all, wayPlacement(wayAddOn), wayPlacement(edge), wayManagement(edge), wayOwn(ownConfig))
}

func wayTemplate(image string) *addonv1alpha1.AddOnTemplate {
	o := template(wayAddOn, image)
	m := &o.Spec.AgentSpec.Workload.Manifests[0]
	var deployment map[string]any
	if err := json.Unmarshal(m.Raw, &deployment); err != nil {
		panic(err)
	}
	path := []string{"metadata", "annotations"}
	if err := unstructured.SetNestedStringMap(deployment, map[string]string{"level": "{{LEVEL}}"}, path...); err != nil {
		panic(err)
	}
	raw, err := json.Marshal(deployment)
	if err != nil {
		panic(err)
	}
	m.RawExtension = runtime.RawExtension{Raw: raw}
	return o
}

// config is a configuration with a level.
func config(name, level string) *addonv1alpha1.AddOnDeploymentConfig {
	o := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
	o.Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{{Name: "LEVEL", Value: level}}
	return o
}

func wayCluster(i int, atEdge bool) *clusterv1.ManagedCluster {
	o := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}}
	o.Spec.HubAcceptsClient, o.Spec.LeaseDurationSeconds = true, 60
	setLabel(o, wayAddOn, true)
	setLabel(o, edge, atEdge)
	return o
}

// wayPlacement selects the clusters with a label.
func wayPlacement(name string) *clusterv1beta1.Placement {
	o := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
	o.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelOf(name): "yes"}},
	}}}
	o.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	return o
}

// wayManagement installs the add-on by the Placements of all clusters and, with configurations of their own, by further
// ones.
func wayManagement(further ...string) *addonv1alpha1.ClusterManagementAddOn {
	o, _ := addOnObjects(wayAddOn, "")[2].(*addonv1alpha1.ClusterManagementAddOn)
	o.Spec.SupportedConfigs = append(o.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
		ConfigGroupResource: configKind(), DefaultConfig: &addonv1alpha1.ConfigReferent{Namespace: space, Name: wayAddOn},
	}, addonv1alpha1.ConfigMeta{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}})
	o.Spec.AddOnConfiguration.CRName = "way" // v1beta1 has it not
	strategies := &o.Spec.InstallStrategy.Placements
	(*strategies)[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	for _, name := range further {
		*strategies = append(*strategies, addonv1alpha1.PlacementStrategy{
			PlacementRef:    addonv1alpha1.PlacementRef{Namespace: space, Name: name},
			Configs:         []addonv1alpha1.AddOnConfig{configOf(name)},
			RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
		})
	}
	return o
}

func configKind() addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
}

// configOf names a configuration.
func configOf(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: configKind(), ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: space, Name: name},
	}
}

// wayOwn is the add-on on a cluster of which a person sets the configuration.
func wayOwn(configs ...string) *addonv1alpha1.ManagedClusterAddOn {
	o := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: wayAddOn}}
	o.Spec.InstallNamespace = wayAddOn // in v1beta1, it is an annotation
	for _, name := range configs {
		o.Spec.Configs = append(o.Spec.Configs, configOf(name))
	}
	return o
}

// detours are other things that a person may want of an object for a while; nil deletes it.
func detours(final client.Object) []client.Object {
	switch o := final.(type) {
	case *addonv1alpha1.AddOnTemplate:
		without := wayTemplate("v1")
		without.Spec.Registration = []addonv1alpha1.RegistrationSpec{}
		return []client.Object{wayTemplate("v0"), without, nil}
	case *addonv1alpha1.AddOnDeploymentConfig:
		other := config(o.Name, "info")
		other.Spec.AgentInstallNamespace = "elsewhere"
		return []client.Object{config(o.Name, "other"), other, config(o.Name, "{{"), nil}
	case *clusterv1.ManagedCluster:
		number := int(o.Name[1] - '0')
		denied, none := wayCluster(number, true), wayCluster(number, false)
		denied.Spec.HubAcceptsClient = false
		setLabel(none, wayAddOn, false)
		return []client.Object{wayCluster(number, number%2 != 0), denied, none, nil}
	case *clusterv1beta1.Placement:
		one, none := wayPlacement(o.Name), wayPlacement(o.Name)
		one.Spec.NumberOfClusters, none.Spec.NumberOfClusters = new(int32(1)), new(int32(0))
		return []client.Object{one, none, nil}
	case *addonv1alpha1.ClusterManagementAddOn:
		without, manual, none := wayManagement(edge), wayManagement(), wayManagement(edge)
		without.Spec.SupportedConfigs = without.Spec.SupportedConfigs[:1]
		without.Spec.AddOnConfiguration.CRDName = "old" // v1beta1 has it not
		none.Spec.SupportedConfigs[1].DefaultConfig = nil
		manual.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
		return []client.Object{wayManagement(), without, manual, none, nil}
	case *addonv1alpha1.ManagedClusterAddOn:
		elsewhere, nowhere := wayOwn(ownConfig), wayOwn(edge)
		elsewhere.Spec.InstallNamespace, nowhere.Spec.InstallNamespace = "elsewhere", ""
		return []client.Object{wayOwn(), nowhere, wayOwn("missing"), elsewhere}
	}
	return nil
}

// wander takes a way to the end that random draws, and tells what it did. With lies, the hub manager is lied to most of
// the time.
func (w way) wander(random *rand.Rand, lies bool) (told []string, err error) {
	all, start := finals(), time.Now()
	tell := func(format string, args ...any) {
		told = append(told, fmt.Sprintf("%s %s", time.Since(start), fmt.Sprintf(format, args...)))
	}
	steps := drawSteps(all, random)
	for len(steps) > 0 {
		again := random.IntN(8) == 0
		if again {
			tell("the hub manager starts again")
			w.stop()
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
		}
		if lies && (again || random.IntN(3) == 0) {
			drawn := proxy.Draw(random.Uint64())
			tell("lies: %s", drawn)
			w.lie(drawn)
		}
		if again {
			w.start()
		}
		open := slices.Sorted(maps.Keys(steps))
		i := open[random.IntN(len(open))]
		object := steps[i][0]
		if steps[i] = steps[i][1:]; len(steps[i]) == 0 {
			delete(steps, i)
		}
		tell("%T %s: %s", all[i], all[i].GetName(), encoded(object))
		if err := w.step(all[i], object); err != nil {
			return told, err
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(90 * time.Second))))
		}
	}
	w.honest()
	return told, w.put(all[len(all)-1])
}

// edit changes images and levels and replaces Placements for a while, as GitOps does, and starts the hub manager again,
// while it is lied to all the time. It tells what it did. Nothing of that asks for a deletion.
func (w way) edit(random *rand.Rand, steps int) (told []string, err error) {
	others := []client.Object{
		wayTemplate("v0"), wayTemplate("v1"), config(wayAddOn, "other"), config(edge, "other"), config(ownConfig, "other"),
	}
	start := time.Now()
	tell := func(what string) { told = append(told, fmt.Sprintf("%s %s", time.Since(start), what)) }
	for range steps {
		again := random.IntN(5) == 0
		if again {
			tell("the hub manager starts again")
			w.stop()
		}
		lies := proxy.Draw(random.Uint64())
		tell("lies: " + lies.String())
		w.lie(lies)
		if again {
			w.start()
		}
		object := others[random.IntN(len(others))]
		tell(encoded(object))
		if err := w.put(object); err != nil {
			return told, err
		}
		if random.IntN(3) == 0 {
			name := []string{wayAddOn, edge}[random.IntN(2)]
			tell("Placement " + name + " is replaced")
			if err := w.step(wayPlacement(name), nil); err != nil {
				return told, err
			}
			if err := w.put(wayPlacement(name)); err != nil {
				return told, err
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(5 * time.Minute))))
	}
	w.honest()
	for _, object := range finals() {
		if err := w.put(object); err != nil {
			return told, err
		}
	}
	return told, nil
}

// drawSteps draws what is written of each object, in order: up to two other things, and then what people want in the
// end. Of the add-on that is installed, that comes after all of it.
func drawSteps(all []client.Object, random *rand.Rand) map[int][]client.Object {
	steps := map[int][]client.Object{}
	for i, final := range all {
		others := detours(final)
		for range random.IntN(3) {
			steps[i] = append(steps[i], others[random.IntN(len(others))])
		}
		if !isInstalled(final) {
			steps[i] = append(steps[i], final)
		}
	}
	return steps
}

// step writes another thing for an object; nil deletes it.
func (w way) step(final, object client.Object) error {
	if _, is := final.(*addonv1alpha1.AddOnTemplate); is && w.author != nil && object == nil {
		w.becomes(nil)
		return nil
	}
	if object == nil {
		gone, err := w.wanted(final)
		if err != nil {
			return err
		}
		return client.IgnoreNotFound(w.admin.Delete(w.ctx, gone))
	}
	if isInstalled(final) && apierrors.IsNotFound(w.write(object)) {
		return nil // it is not installed at this time
	}
	return w.put(object)
}

// encoded is an object as JSON.
func encoded(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// isInstalled reports whether an object is there only while the hub manager installs it.
func isInstalled(object client.Object) bool {
	_, is := object.(*addonv1alpha1.ManagedClusterAddOn)
	return is
}

// put writes an object: makes it, or changes its labels and its spec. The add-on on a cluster is there when the hub
// manager installed it.
func (w way) put(object client.Object) error {
	if template, is := object.(*addonv1alpha1.AddOnTemplate); is && w.author != nil {
		w.becomes(template)
		return nil
	}
	for end := time.Now().Add(time.Hour); ; time.Sleep(time.Second) {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.write(object) })
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// write writes an object once, in a version that is drawn.
func (w way) write(object client.Object) error {
	want, err := w.wanted(object)
	if err != nil {
		return err
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(want.GroupVersionKind())
	err = w.admin.Get(w.ctx, client.ObjectKeyFromObject(object), there)
	switch {
	case apierrors.IsNotFound(err) && !isInstalled(object):
		return w.admin.Create(w.ctx, want)
	case err != nil:
		return fmt.Errorf("reading %s: %w", object.GetName(), err)
	case there.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", object.GetName())
	}
	there.Object["spec"] = want.Object["spec"]
	there.SetAnnotations(inAnnotations(there.GetAnnotations(), want.GetAnnotations()))
	if _, isCluster := object.(*clusterv1.ManagedCluster); isCluster {
		labels := object.GetLabels()
		for key, value := range there.GetLabels() {
			if !strings.HasPrefix(key, labelOf("")) {
				labels[key] = value
			}
		}
		there.SetLabels(labels)
	}
	return w.admin.Update(w.ctx, there)
}
