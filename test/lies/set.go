package lies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// has reports whether a play has a scene, and returns its first step.
func (p play) has(s scene) (step, bool) {
	i := slices.IndexFunc(p.steps, func(one step) bool { return one.scene == s })
	if i < 0 {
		return step{}, false
	}
	return p.steps[i], true
}

// rolled, hooked and manual are the names of the add-ons of a play: one that all clusters have, one with a hook, and
// one that people install.
func (p play) rolled() string { return p.name("rolled") }
func (p play) hooked() string { return p.name("hooked") }
func (p play) manual() string { return p.name("manual") }

// set makes what a play begins with. All of it is protected before it exists.
func (r *run) set(ctx context.Context) error {
	r.judge.rolls(r.rolled(), r.atOnce, false)
	if err := r.addOn(ctx, r.rolled(), r.nextImage(), false, r.spokes...); err != nil {
		return err
	}
	if one, has := r.has(deleteManagement); has {
		r.judge.rolls(r.hooked(), r.atOnce, true)
		if err := r.addOn(ctx, r.hooked(), r.nextImage(), true, r.spokes[one.cluster]); err != nil {
			return err
		}
	}
	for _, one := range r.spokes {
		if err := r.setCluster(ctx, one); err != nil {
			return err
		}
	}
	return r.setStrangers(ctx)
}

func (r *run) nextImage() string {
	r.version++
	return fmt.Sprintf("v%d", r.version)
}

// addOn installs an add-on on clusters.
func (r *run) addOn(ctx context.Context, name, image string, hooked bool, on ...*spoke) error {
	r.wants.image[name] = image
	for _, o := range []client.Object{template(name, image, hooked), placement(name), management(name, r.atOnce)} {
		if err := r.hub.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, name, err)
		}
	}
	for _, one := range on {
		p := pair{one.Name, name}
		r.wants.selected[p] = true
		r.judge.protect("the cluster is selected", id{p.cluster, kindAddOn, p.addOn}, id{p.cluster, kindDeployment, p.addOn},
			workOf(p))
		if err := r.label(ctx, one.Name, labelOf(name), "yes"); err != nil {
			return err
		}
	}
	return nil
}

// label sets or, with an empty value, removes a label of a cluster.
func (r *run) label(ctx context.Context, cluster, key, value string) error {
	return edit(ctx, r.hub, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		func(c *clusterv1.ManagedCluster) { c.Labels = withLabel(c.Labels, key, value) })
}

// edit changes an object.
func edit[O client.Object](ctx context.Context, c client.Client, o O, change func(O)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return c.Update(ctx, o)
	})
	if err != nil {
		return fmt.Errorf("changing %T %s: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// setCluster makes the works of a cluster, and the objects of others.
func (r *run) setCluster(ctx context.Context, one *spoke) error {
	name := func(what string) string { return r.name(what) }
	for _, what := range []string{"foreign", "contested"} {
		if err := one.admin.Create(ctx, configMap(name(what), owner), client.FieldOwner(owner)); err != nil {
			return fmt.Errorf("creating %s: %w", what, err)
		}
		r.wantValue(one, what, owner)
		r.judge.keep(r.mapOf(one, what), owner)
	}
	works := []*workv1.ManifestWork{
		work(one.Name, name("one"), configMap(name("one-a"), "1"), configMap(name("one-b"), "1")),
		work(one.Name, name("two"), configMap(name("two-a"), "1"), configMap(name("shared-a"), "1")),
		work(one.Name, name("left"), configMap(name("left-a"), "1")),
		work(one.Name, name("shared"), configMap(name("shared-a"), "1"), configMap(name("contested"), "1")),
	}
	works[2].Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	applies(works[3], name("contested"), workv1.UpdateStrategyTypeServerSideApply)
	for _, what := range []string{"one-a", "one-b", "two-a", "left-a", "shared-a"} {
		r.wantValue(one, what, "1")
	}
	if last, has := r.has(evict); has && r.spokes[last.cluster] == one {
		works = append(works, work(one.Name, name("going"), configMap(name("going-a"), "1")))
		r.wantValue(one, "going-a", "1")
	}
	for _, w := range works {
		i := id{one.Name, kindWork, w.Name}
		r.wants.works[i] = true
		r.judge.protect("nobody deletes it", i)
		if err := r.hub.Create(ctx, w); err != nil {
			return fmt.Errorf("creating work %s of %s: %w", w.Name, one.Name, err)
		}
	}
	return nil
}

// mapOf names a ConfigMap of a play.
func (r *run) mapOf(one *spoke, what string) id { return id{one.Name, kindConfigMap, r.name(what)} }

// wantValue notes that a ConfigMap is wanted with a value.
func (r *run) wantValue(one *spoke, what, value string) {
	r.wants.values[r.mapOf(one, what)] = value
	r.judge.protect("a work has it, or others", r.mapOf(one, what))
}

// setStrangers makes clusters that have no agents, with an add-on that people install.
func (r *run) setStrangers(ctx context.Context) error {
	for _, s := range []scene{denyRequest, deleteCluster} {
		if _, has := r.has(s); !has {
			continue
		}
		if len(r.strangers) == 0 {
			for _, o := range []client.Object{template(r.manual(), "v1", false), byHand(r.manual())} {
				if err := r.hub.Create(ctx, o); err != nil {
					return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
				}
			}
		}
		name := r.name(map[scene]string{denyRequest: "denied", deleteCluster: "deleted"}[s])
		r.strangers[s] = name
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, 60
		if err := r.hub.Create(ctx, cluster); err != nil {
			return fmt.Errorf("creating cluster %s: %w", name, err)
		}
	}
	return nil
}

// ofOthers reports whether a ConfigMap stays when the works go: it belongs to others, or was orphaned.
func ofOthers(name string) bool {
	return slices.ContainsFunc([]string{"-foreign", "-contested", "-left-a"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// clear deletes all that a play made, and returns what is left.
func (r *run) clear(ctx context.Context) []string {
	r.judge.forget()
	hub := r.hub
	var failed []string
	gone := func(c client.Client, o client.Object) {
		if err := c.Delete(ctx, o); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Sprintf("deleting %T %s: %v", o, o.GetName(), err))
		}
	}
	for _, name := range []string{r.rolled(), r.hooked(), r.manual()} {
		gone(hub, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for i := range r.wants.works {
		gone(hub, work(i.cluster, i.name))
	}
	for _, name := range r.strangers {
		gone(hub, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	stays := r.wants.values
	r.wants = newWants(r.wants.prefix)
	for i, value := range stays {
		if ofOthers(i.name) {
			r.wants.values[i] = value
		}
	}
	left := r.settle(ctx)
	for i := range r.wants.values {
		gone(r.spoke(i.cluster).admin, configMap(i.name, ""))
	}
	for _, name := range []string{r.rolled(), r.hooked(), r.manual()} {
		gone(hub, placement(name))
		gone(hub, template(name, "", false))
		for _, one := range r.spokes {
			if err := r.label(ctx, one.Name, labelOf(name), ""); err != nil {
				failed = append(failed, err.Error())
			}
		}
	}
	for _, name := range r.strangers {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !r.waitFor(ctx, "cluster "+name+" to go", patience, r.isGone(cluster)) {
			left = append(left, "cluster "+name+" is there")
		}
		gone(hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return append(left, failed...)
}

// credentialOf is the Secret with the credential of an add-on.
func credentialOf(addOn string) *corev1.Secret {
	meta := metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: addOn + "-hub-kubeconfig"}
	return &corev1.Secret{ObjectMeta: meta}
}
