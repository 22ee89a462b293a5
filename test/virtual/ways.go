package virtual

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
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
type way struct{ *World }

// newWay returns a hub whose manager runs.
func newWay(ctx context.Context, o Options) (way, error) {
	w, err := New(ctx, o)
	if err == nil {
		w.way.remember() // a manager that starts again may see the hub as it was before there was anything
		startManager(w)
	}
	return way{w}, err
}

// startManager starts the hub manager and waits for it. A manager of controller-runtime that is stopped while it starts
// waits in a loop, in which a bubble stands still.
func startManager(w *World) {
	w.manager.start(w.ctx)
	time.Sleep(10 * time.Second)
}

// stopManager ends the hub manager. Lies end before that, because a manager that starts slowly cannot be stopped.
func (w way) stopManager() {
	if w.way.honest() {
		time.Sleep(startTime)
	}
	w.manager.stop()
}

// finals is what people want in the end, in the order in which a person writes it.
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
	//nolint:staticcheck // v1alpha1 has it
	o.Spec.SupportedConfigs = append(o.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
		ConfigGroupResource: configKind(), DefaultConfig: &addonv1alpha1.ConfigReferent{Namespace: space, Name: wayAddOn},
	})
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
		without, manual := wayManagement(edge), wayManagement()
		without.Spec.SupportedConfigs = without.Spec.SupportedConfigs[:1] //nolint:staticcheck // v1alpha1 has it
		manual.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
		return []client.Object{wayManagement(), without, manual, nil}
	case *addonv1alpha1.ManagedClusterAddOn:
		return []client.Object{wayOwn(), wayOwn(edge), wayOwn("missing")}
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
			w.stopManager()
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
		}
		if lies && (again || random.IntN(3) == 0) {
			drawn := proxy.Draw(random.Uint64())
			tell("lies: %s", drawn)
			w.way.lie(drawn)
		}
		if again {
			startManager(w.World)
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
	w.way.honest()
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
			w.stopManager()
		}
		lies := proxy.Draw(random.Uint64())
		tell("lies: " + lies.String())
		w.way.lie(lies)
		if again {
			startManager(w.World)
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
	w.way.honest()
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
	if object == nil {
		gone, _ := final.DeepCopyObject().(client.Object)
		return client.IgnoreNotFound(w.admin.Delete(w.ctx, gone))
	}
	if err := w.write(object); isInstalled(final) && apierrors.IsNotFound(err) {
		return nil // it is not installed at this time
	}
	return w.put(object)
}

// encoded is an object as JSON.
func encoded(object client.Object) string {
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
	for end := time.Now().Add(time.Hour); ; time.Sleep(time.Second) {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.write(object) })
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// write writes an object once.
func (w way) write(object client.Object) error {
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	there, _ := object.DeepCopyObject().(client.Object)
	err = w.admin.Get(w.ctx, client.ObjectKeyFromObject(object), there)
	switch {
	case apierrors.IsNotFound(err) && !isInstalled(object):
		made, _ := object.DeepCopyObject().(client.Object)
		return w.admin.Create(w.ctx, made)
	case err != nil:
		return fmt.Errorf("reading %s: %w", object.GetName(), err)
	case there.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", object.GetName())
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return err
	}
	now["spec"] = want["spec"]
	u := &unstructured.Unstructured{Object: now}
	if _, isCluster := object.(*clusterv1.ManagedCluster); isCluster {
		labels := object.GetLabels()
		for key, value := range u.GetLabels() {
			if !strings.HasPrefix(key, labelOf("")) {
				labels[key] = value
			}
		}
		u.SetLabels(labels)
	}
	kind, err := w.admin.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	u.SetGroupVersionKind(kind)
	return w.admin.Update(w.ctx, u)
}

// settle waits until the state is the one that is wanted, or, for nil, until it does not change any more.
func (w way) settle(want map[string]string) error {
	// What failed is tried again after 16 minutes at the latest, and an edit explains removals for 15 minutes, after which
	// the hub manager notes that it is over.
	const patience, still = 80 * time.Minute, 40 * time.Minute
	before, since := map[string]string{}, time.Now()
	for end := time.Now().Add(patience); ; time.Sleep(time.Minute) {
		now, err := w.read()
		if err != nil {
			return err
		}
		if !maps.Equal(now, before) {
			before, since = now, time.Now()
		}
		quiet := time.Since(since) >= still
		if quiet && (want == nil || maps.Equal(now, want)) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the states differ: %s", difference(want, now))
		}
	}
}

// writes returns what the hub manager writes in a time in which nothing happens.
func (w way) writes() []string {
	before := w.way.written()
	time.Sleep(quietFor)
	return w.way.more(before)
}

// read returns everything that the hub manager writes for add-ons, by kind and name. Instants, and what API servers
// count, are left out; UIDs are the names of their objects.
func (w way) read() (map[string]string, error) {
	lists := []client.ObjectList{
		&workv1.ManifestWorkList{}, &addonv1alpha1.ManagedClusterAddOnList{}, &addonv1alpha1.ClusterManagementAddOnList{},
		&rbacv1.RoleBindingList{}, &clusterv1beta1.PlacementList{}, &clusterv1beta1.PlacementDecisionList{},
		&clusterv1.ManagedClusterList{}, &addonv1alpha1.AddOnTemplateList{}, &addonv1alpha1.AddOnDeploymentConfigList{},
	}
	all, uids := map[string]string{}, []string{}
	for _, list := range lists {
		if err := w.admin.List(w.ctx, list); err != nil {
			return nil, fmt.Errorf("reading %T: %w", list, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
		if err != nil {
			return nil, err
		}
		kind := strings.TrimSuffix(fmt.Sprintf("%T", list)[strings.Index(fmt.Sprintf("%T", list), ".")+1:], "List")
		items, _ := content["items"].([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			u := unstructured.Unstructured{Object: object}
			name := fmt.Sprint(kind, " ", u.GetNamespace(), "/", u.GetName())
			uids = append(uids, string(u.GetUID()), "UID of "+name)
			text, err := json.Marshal(without(object))
			if err != nil {
				return nil, err
			}
			all[name] = string(text)
		}
	}
	named := strings.NewReplacer(uids...)
	instants := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// What people intended is known by the UIDs and generations of Placements.
	intents := regexp.MustCompile(`"intent\\":\\"2:[0-9a-f]+`)
	// A page of a Placement that is made again has another number while the former one goes.
	pages := regexp.MustCompile(`-decision-\d+|sum [0-9a-f]+`)
	parts := regexp.MustCompile(`(/decision-group\\*":\\*"[^"]*)/\d+`)
	read := make(map[string]string, len(all))
	for name, text := range all {
		text = intents.ReplaceAllString(instants.ReplaceAllString(named.Replace(text), "then"), "intent")
		text = parts.ReplaceAllString(pages.ReplaceAllString(text, "-decision"), "$1")
		read[pages.ReplaceAllString(name, "-decision")] = text
	}
	return read, nil
}

// without returns a value without what counts changes, and with its conditions by type.
func without(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for _, key := range []string{
			"resourceVersion", "generation", "observedGeneration", "lastObservedGeneration", "managedFields",
		} {
			delete(typed, key)
		}
		for key, item := range typed {
			typed[key] = without(item)
		}
		if conditions, is := typed["conditions"].([]any); is {
			slices.SortFunc(conditions, func(a, b any) int { return cmp.Compare(typeOf(a), typeOf(b)) })
		}
	case []any:
		for i, item := range typed {
			typed[i] = without(item)
		}
	}
	return value
}

// typeOf is the type of a condition.
func typeOf(condition any) string {
	content, _ := condition.(map[string]any)
	text, _ := content["type"].(string)
	return text
}

// difference tells where two states differ.
func difference(want, got map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			all = append(all, name+": "+firstDifference(want[name], got[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[name]; !wanted {
			all = append(all, name+" is there besides")
		}
	}
	return strings.Join(all, "\n")
}

// firstDifference quotes two texts where they begin to differ.
func firstDifference(want, got string) string {
	const before, length = 80, 400
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	quoted := func(text string) string { return text[max(0, min(at-before, len(text))):min(len(text), at+length)] }
	return fmt.Sprintf("want %q\ngot %q", quoted(want), quoted(got))
}
