package lies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// wants says what the people of a play want.
type wants struct {
	prefix string
	// image is that of each add-on, on the clusters that are selected for it.
	image    map[string]string
	selected map[pair]bool
	// works are those that people wrote, with their ConfigMaps.
	works map[id]bool
	// values are those of the ConfigMaps.
	values map[id]string
}

func newWants(prefix string) *wants {
	return &wants{
		prefix: prefix, image: map[string]string{}, selected: map[pair]bool{}, works: map[id]bool{}, values: map[id]string{},
	}
}

// seen holds what the API servers have of a play on one cluster.
type seen struct {
	cluster     clusterv1.ManagedCluster
	addOns      map[string]*addonv1alpha1.ManagedClusterAddOn
	works       map[string]*workv1.ManifestWork
	applied     []string
	deployments map[string]*appsv1.Deployment
	configMaps  map[string]*corev1.ConfigMap
	secrets     map[string]*corev1.Secret
}

// look reads what there is of a play on a cluster.
func (s *stage) look(ctx context.Context, one *spoke, prefix string) (*seen, error) {
	v := &seen{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: one.Name}, &v.cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", one.Name, err)
	}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	var works workv1.ManifestWorkList
	var applied workv1.AppliedManifestWorkList
	var deployments appsv1.DeploymentList
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	for _, read := range []struct {
		from      client.Client
		list      client.ObjectList
		namespace string
	}{
		{s.hub, &addOns, one.Name}, {s.hub, &works, one.Name}, {one.admin, &applied, ""},
		{one.admin, &deployments, names.NamespaceAgentAddon}, {one.admin, &configMaps, space},
		{one.admin, &secrets, names.NamespaceAgentAddon},
	} {
		if err := read.from.List(ctx, read.list, client.InNamespace(read.namespace)); err != nil {
			return nil, fmt.Errorf("reading %T of %s: %w", read.list, one.Name, err)
		}
	}
	v.addOns = named(addOns.Items, prefix)
	v.works = named(works.Items, prefix)
	v.applied = slices.Sorted(maps.Keys(named(applied.Items, prefix)))
	v.deployments = named(deployments.Items, prefix)
	v.configMaps = named(configMaps.Items, prefix)
	v.secrets = named(secrets.Items, prefix)
	return v, nil
}

// named returns the objects whose names contain a prefix of a play, by name.
func named[T any, O interface {
	*T
	client.Object
}](items []T, prefix string) map[string]O {
	all := map[string]O{}
	for i := range items {
		if o := O(&items[i]); strings.Contains(o.GetName(), prefix) {
			all[o.GetName()] = o
		}
	}
	return all
}

// differences returns how a cluster differs from what people want.
func (w *wants) differences(cluster string, v *seen) []string {
	var wrong []string
	tell := func(format string, args ...any) {
		wrong = append(wrong, cluster+": "+fmt.Sprintf(format, args...))
	}
	for _, kind := range []string{
		clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined,
		clusterv1.ManagedClusterConditionAvailable,
	} {
		if !meta.IsStatusConditionTrue(v.cluster.Status.Conditions, kind) {
			tell("it is not %s", kind)
		}
	}
	works := map[string]bool{}
	for i := range w.works {
		if i.cluster == cluster {
			works[i.name] = true
		}
	}
	for p := range w.selected {
		if p.cluster == cluster {
			works[workOf(p).name] = true
			w.checkAddOn(p, v, tell)
		}
	}
	for name := range v.addOns {
		if !w.selected[pair{cluster, name}] {
			tell("add-on %s is there", name)
		}
	}
	for name := range v.deployments {
		if !w.selected[pair{cluster, name}] {
			tell("Deployment %s is there", name)
		}
	}
	w.checkWorks(works, v, tell)
	w.checkValues(cluster, v, tell)
	slices.Sort(wrong)
	return wrong
}

// checkAddOn compares an add-on that people want on a cluster.
func (w *wants) checkAddOn(p pair, v *seen, tell func(string, ...any)) {
	image := w.image[p.addOn]
	if a := v.addOns[p.addOn]; a == nil || a.DeletionTimestamp != nil {
		tell("add-on %s is not there", p.addOn)
	} else if !meta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable) {
		tell("add-on %s is not available%s", p.addOn, said(a.Status.Conditions))
	}
	if d := v.deployments[p.addOn]; d == nil {
		tell("Deployment %s is not there", p.addOn)
	} else if imageOf(d) != image || !isAvailable(d) {
		inWork := ""
		if one := v.works[workOf(p).name]; one != nil {
			if inWork = imageIn(one); one.DeletionTimestamp != nil {
				inWork += ", which is going"
			}
		}
		tell("Deployment %s has image %s (%s in its work) and not %s, or does not run", p.addOn, imageOf(d), inWork, image)
	}
	secret := v.secrets[p.addOn+"-hub-kubeconfig"]
	if secret == nil {
		tell("add-on %s has no credential", p.addOn)
		return
	}
	chain, err := cert.ParseCertsPEM(secret.Data[csr.KeyCertificate])
	if err != nil || time.Now().After(chain[0].NotAfter) {
		tell("the certificate of add-on %s has ended (%v)", p.addOn, err)
	}
}

// said lists conditions.
func said(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "; %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// checkWorks compares the works of a cluster.
func (w *wants) checkWorks(want map[string]bool, v *seen, tell func(string, ...any)) {
	for name := range want {
		one := v.works[name]
		if one == nil {
			tell("work %s is not there", name)
			continue
		}
		c := meta.FindStatusCondition(one.Status.Conditions, workv1.WorkApplied)
		contested := strings.HasSuffix(name, "-shared") // what others keep is not applied
		if c == nil || c.ObservedGeneration != one.Generation || c.Status != metav1.ConditionTrue && !contested {
			tell("work %s is not applied", name)
		}
	}
	for name := range v.works {
		if !want[name] {
			tell("work %s is there", name)
		}
	}
	if len(v.applied) != len(want) {
		tell("%d works are applied (%s) of %d", len(v.applied), strings.Join(v.applied, ", "), len(want))
	}
}

// checkValues compares the ConfigMaps of a cluster.
func (w *wants) checkValues(cluster string, v *seen, tell func(string, ...any)) {
	for i, value := range w.values {
		if i.cluster != cluster {
			continue
		}
		if o := v.configMaps[i.name]; o == nil {
			tell("ConfigMap %s is not there", i.name)
		} else if o.Data["value"] != value {
			tell("ConfigMap %s has value %s, and not %s", i.name, o.Data["value"], value)
		}
	}
	for name := range v.configMaps {
		if _, wanted := w.values[id{cluster, kindConfigMap, name}]; !wanted {
			tell("ConfigMap %s is there", name)
		}
	}
}
