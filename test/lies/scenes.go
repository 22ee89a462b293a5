package lies

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// perform plays a scene.
func (r *run) perform(ctx context.Context, s step) error {
	one := r.spokes[s.cluster]
	p := pair{one.Name, r.rolled()}
	switch s.scene {
	case newImage:
		return r.setImage(ctx, r.nextImage())
	case badImage:
		if err := r.setImage(ctx, bad+r.nextImage()); err != nil {
			return err
		}
		fleet.Pause(ctx, s.within)
		return r.setImage(ctx, r.nextImage())
	case deselect:
		return r.choose(ctx, p, false)
	case deselectAndBack:
		if err := r.choose(ctx, p, false); err != nil {
			return err
		}
		fleet.Pause(ctx, s.within)
		return r.choose(ctx, p, true)
	case deleteAddOn:
		r.judge.free(p)
		return client.IgnoreNotFound(r.hub.Delete(ctx, &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: p.addOn},
		}))
	case deleteManagement:
		r.judge.free(pair{one.Name, r.hooked()})
		delete(r.wants.selected, pair{one.Name, r.hooked()})
		return r.hub.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: r.hooked()}})
	case loseCredential:
		r.judge.excuse(p)
		return client.IgnoreNotFound(one.admin.Delete(ctx, credentialOf(p.addOn)))
	case evict:
		return r.evict(ctx, one, s.within)
	case denyRequest, deleteCluster:
		return r.refuse(ctx, s)
	case denyCluster:
		return r.denyAWhile(ctx, one, s.within)
	case replacePlacement:
		if err := r.hub.Delete(ctx, placement(p.addOn)); err != nil {
			return fmt.Errorf("deleting the Placement: %w", err)
		}
		fleet.Pause(ctx, s.within/4)
		return r.hub.Create(ctx, placement(p.addOn))
	case moveObject:
		return r.move(ctx, one)
	case orphan:
		return r.orphan(ctx, one)
	case deleteWork:
		return r.deleteShared(ctx, one)
	case killAgent:
		return r.keeper.restart(ctx, one.Agent, s.within/2)
	case wrongProxy:
		one.toHub.Lie(proxy.Lies{Seed: r.seed, Away: 1, Astray: 10 * time.Hour})
		err := r.keeper.restart(ctx, one.Agent, 0)
		fleet.Pause(ctx, s.within)
		one.toHub.Lie(r.ofHub[s.cluster])
		return err
	case killManager:
		return r.keeper.restart(ctx, r.fleet.HubManager(), s.within/2)
	}
	return fmt.Errorf("nobody plays %q", s.scene)
}

// setImage changes the image of the add-on that all clusters have.
func (r *run) setImage(ctx context.Context, image string) error {
	r.tell("  image %s", image)
	name := r.rolled()
	r.wants.image[name] = image
	return edit(ctx, r.hub, template(name, "", false), func(t *addonv1alpha1.AddOnTemplate) {
		t.Spec = template(name, image, false).Spec
	})
}

// choose selects a cluster for an add-on, or no longer does.
func (r *run) choose(ctx context.Context, p pair, selected bool) error {
	r.judge.free(p)
	if delete(r.wants.selected, p); selected {
		r.wants.selected[p] = true
		return r.label(ctx, p.cluster, labelOf(p.addOn), "yes")
	}
	return r.label(ctx, p.cluster, labelOf(p.addOn), "")
}

// applied waits a while until a work has an object on its cluster.
func (r *run) applied(ctx context.Context, one *spoke, workName, object string) bool {
	return r.waitFor(ctx, "work "+workName+" to have "+object, longestScene, func(ctx context.Context) error {
		var o corev1.ConfigMap
		if err := one.admin.Get(ctx, client.ObjectKey{Namespace: space, Name: r.name(object)}, &o); err != nil {
			return err
		}
		owned := workName == "left" // what is orphaned has no owner
		for _, ref := range o.OwnerReferences {
			owned = owned || strings.HasSuffix(ref.Name, r.name(workName))
		}
		if !owned || o.Data["value"] != "1" {
			return fleet.NotYet("it has not")
		}
		return nil
	})
}

// dropWork deletes a work of people.
func (r *run) dropWork(ctx context.Context, one *spoke, what string) error {
	i := id{one.Name, kindWork, r.name(what)}
	r.judge.release(i)
	delete(r.wants.works, i)
	return client.IgnoreNotFound(r.hub.Delete(ctx, work(i.cluster, i.name)))
}

// evict lets a work vanish from the hub while the agent is away.
func (r *run) evict(ctx context.Context, one *spoke, within time.Duration) error {
	r.applied(ctx, one, "going", "going-a")
	one.toHub.Link.Cut()
	defer one.toHub.Link.Mend()
	i := r.mapOf(one, "going-a")
	r.judge.release(i)
	delete(r.wants.values, i)
	if err := r.dropWork(ctx, one, "going"); err != nil {
		return err
	}
	err := edit(ctx, r.hub, work(one.Name, r.name("going")), func(w *workv1.ManifestWork) { w.Finalizers = nil })
	if client.IgnoreNotFound(err) != nil {
		r.tell("  %v", err) // one without finalizers is gone
	}
	return r.keeper.restart(ctx, one.Agent, within/2)
}

// refuse denies or deletes a cluster without an agent, which then asks for certificates.
func (r *run) refuse(ctx context.Context, s step) error {
	name := r.strangers[s.scene]
	registered := r.waitFor(ctx, name+" to be served", longestScene, func(ctx context.Context) error {
		return r.hub.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	})
	if !registered {
		return nil
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: r.manual()}}
	if err := r.hub.Create(ctx, addOn); err != nil {
		r.tell("  %v", err) // the namespace may be going
	}
	fleet.Pause(ctx, s.within/2)
	agent, err := r.fleet.Hub.User(csr.ClusterUser(name, "agent"), csr.ClusterGroup(name), csr.GroupManagedClusters)
	if err != nil {
		return err
	}
	as, err := client.New(agent, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return fmt.Errorf("building the client of an agent: %w", err)
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if s.scene == deleteCluster {
		err = r.hub.Delete(ctx, cluster)
	} else {
		err = edit(ctx, r.hub, cluster, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	}
	if err != nil || s.scene == deleteCluster && !r.waitFor(ctx, name+" to be gone", longestScene, r.isGone(cluster)) {
		return err // one that is going may renew until its works are gone
	}
	r.judge.deny(name)
	return r.ask(ctx, as, name)
}

// isGone returns what waits for an object of the hub to be gone.
func (r *run) isGone(o client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		err := r.hub.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fleet.NotYet("%T %s is there: %v", o, o.GetName(), err)
	}
}

// ask asks for the certificates of a cluster and of its add-on.
func (r *run) ask(ctx context.Context, as client.Client, cluster string) error {
	key, err := csr.NewKey()
	if err != nil {
		return err
	}
	ofAddOn, err := csr.ForAddon(cluster, r.manual(), addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient})
	if err != nil {
		return err
	}
	for what, request := range map[string]csr.Request{"cluster": csr.ForCluster(cluster, "agent"), "addon": ofAddOn} {
		o, err := request.Build(key)
		if err != nil {
			return err
		}
		o.Name, o.GenerateName = cluster+afterwards+"-"+what, ""
		if err := as.Create(ctx, o); err != nil {
			r.tell("  %v", err) // its rights may be gone already
			if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
				return err
			}
		}
	}
	return nil
}

// denyAWhile denies a cluster and accepts it again.
func (r *run) denyAWhile(ctx context.Context, one *spoke, within time.Duration) error {
	accept := func(accepted bool) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: one.Name}}
		return edit(ctx, r.hub, cluster, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = accepted })
	}
	r.judge.leaves(one.Name)
	if err := accept(false); err != nil {
		return err
	}
	r.judge.deny(one.Name)
	fleet.Pause(ctx, within)
	r.judge.welcome(one.Name)
	return accept(true)
}

// move moves an object from one work to another, which never leaves it without one.
func (r *run) move(ctx context.Context, one *spoke) error {
	other, moved := work(one.Name, r.name("two")), configMap(r.name("one-b"), "1")
	err := edit(ctx, r.hub, other, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifest(moved))
	})
	if err != nil || !r.applied(ctx, one, "two", "one-b") {
		return err
	}
	return edit(ctx, r.hub, work(one.Name, r.name("one")), func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1]
	})
}

// orphan deletes a work that leaves its object to others, who change it then.
func (r *run) orphan(ctx context.Context, one *spoke) error {
	if !r.applied(ctx, one, "left", "left-a") {
		return nil
	}
	if err := r.dropWork(ctx, one, "left"); err != nil {
		return err
	}
	if !r.waitFor(ctx, "the work that orphans to go", longestScene, r.isGone(work(one.Name, r.name("left")))) {
		return nil
	}
	r.wantValue(one, "left-a", owner)
	err := edit(ctx, one.admin, configMap(r.name("left-a"), ""), func(o *corev1.ConfigMap) { o.Data["value"] = owner })
	if err == nil {
		r.judge.keep(r.mapOf(one, "left-a"), owner)
	}
	return err
}

// deleteShared deletes a work whose objects another work has, too, or others keep.
func (r *run) deleteShared(ctx context.Context, one *spoke) error {
	if !r.applied(ctx, one, "shared", "shared-a") || !r.applied(ctx, one, "two", "shared-a") {
		return nil
	}
	return r.dropWork(ctx, one, "shared")
}
