package soak

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// image holds what a version runs.
func image(version string) string { return "registry.example.com/rolling:" + version }

// templateOf is the template of a version, by its name.
func templateOf(version string) *addonv1alpha1.AddOnTemplate {
	return &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: rollingAddon + "-" + version}}
}

// write writes the add-on with a version.
func (r *rollouts) write(ctx context.Context, version string) error {
	return r.fleet.Hub.Apply(ctx, []byte(strings.ReplaceAll(rollingFile, "VERSION", version)))
}

// complete waits until all clusters have a version, the judge has seen it, and all that there is to read says so.
func (r *rollouts) complete(ctx context.Context, version string) error {
	return fleet.Wait(ctx, "version "+version+" to be everywhere", nil, func(ctx context.Context) error {
		for _, cluster := range r.fleet.Clusters() {
			if err := r.hasVersion(ctx, cluster, version); err != nil {
				return fmt.Errorf("%s: %w", cluster.Name, err)
			}
		}
		management, err := addonapi.Client{Client: r.fleet.HubClient}.GetClusterManagementAddOn(ctx, rollingAddon)
		if err != nil {
			return err
		}
		return progressed(management, version)
	})
}

// progressed says why a ClusterManagementAddOn does not say that a version is everywhere.
func progressed(management *addonv1beta1.ClusterManagementAddOn, version string) error {
	if len(management.Status.InstallProgressions) != 1 {
		return fleet.NotYet("there are %d progressions", len(management.Status.InstallProgressions))
	}
	progression := management.Status.InstallProgressions[0]
	if len(progression.ConfigReferences) == 0 {
		return fleet.NotYet("the progression has no configuration")
	}
	for _, of := range progression.ConfigReferences {
		if of.DesiredConfig == nil || of.DesiredConfig.Name != templateOf(version).Name ||
			!reflect.DeepEqual(of.DesiredConfig, of.LastAppliedConfig) {
			return fleet.NotYet("the progression wants %v and has %v", of.DesiredConfig, of.LastAppliedConfig)
		}
	}
	return completed(progression.Conditions)
}

// completed says why conditions do not say that a rollout is complete.
func completed(conditions []metav1.Condition) error {
	progressing := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	if progressing == nil || progressing.Reason != addonv1beta1.ProgressingReasonCompleted {
		return fleet.NotYet("%v", conditions)
	}
	return nil
}

// hasVersion says why a cluster does not have a version.
func (r *rollouts) hasVersion(ctx context.Context, cluster *fleet.Cluster, version string) error {
	hub := addonapi.Client{Client: r.fleet.HubClient}
	addOn, err := hub.GetAddOn(ctx, types.NamespacedName{Namespace: cluster.Name, Name: rollingAddon})
	if err != nil {
		return err
	}
	conditions := addOn.Status.Conditions
	if !meta.IsStatusConditionTrue(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable) {
		return fleet.NotYet("the add-on is not available: %v", conditions)
	}
	if len(addOn.Status.ConfigReferences) == 0 {
		return fleet.NotYet("the add-on has no configuration")
	}
	for _, of := range addOn.Status.ConfigReferences {
		if of.DesiredConfig == nil || of.DesiredConfig.Name != templateOf(version).Name ||
			!reflect.DeepEqual(of.DesiredConfig, of.LastAppliedConfig) {
			return fleet.NotYet("the add-on wants %v and has %v", of.DesiredConfig, of.LastAppliedConfig)
		}
	}
	if err := completed(conditions); err != nil {
		return err
	}
	var works workv1.ManifestWorkList
	own := client.MatchingLabels{names.LabelAddonName: rollingAddon}
	if err := r.fleet.HubClient.List(ctx, &works, client.InNamespace(cluster.Name), own); err != nil {
		return fmt.Errorf("reading the works: %w", err)
	}
	if n := len(works.Items); n != 1 {
		return fleet.NotYet("there are %d works", n)
	}
	if err := carries(&works.Items[0], version); err != nil {
		return err
	}
	if err := runs(ctx, cluster, version); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen := r.has[cluster.Name]; seen != version {
		return fleet.NotYet("the judge has seen version %q", seen)
	}
	return nil
}

// versionIn is the version that a work has; empty if it has none.
func versionIn(work *workv1.ManifestWork) string {
	for _, m := range work.Spec.Workload.Manifests {
		if _, rest, found := strings.Cut(string(m.Raw), image("")); found {
			version, _, _ := strings.Cut(rest, `"`)
			return version
		}
	}
	return ""
}

// carries says why a work does not have a version, or was not applied with it.
func carries(work *workv1.ManifestWork, version string) error {
	if has := versionIn(work); has != version {
		return fleet.NotYet("the work has version %q", has)
	}
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return fleet.NotYet("the work of generation %d is not %s: %v", work.Generation, kind, c)
		}
	}
	return nil
}

// runs says why a cluster does not run a version.
func runs(ctx context.Context, cluster *fleet.Cluster, version string) error {
	var found appsv1.Deployment
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: rollingAddon}
	if err := cluster.Client.Get(ctx, key, &found); err != nil {
		return err
	}
	if has := found.Spec.Template.Spec.Containers[0].Image; has != image(version) {
		return fleet.NotYet("the Deployment has image %s", has)
	}
	s := found.Status
	if s.ObservedGeneration != found.Generation || s.AvailableReplicas == 0 || s.UpdatedReplicas != s.Replicas {
		return fleet.NotYet("the Deployment is not available: %+v", s)
	}
	return nil
}

// watchWorks lets the judge see the works of the add-on until ctx ends.
func (r *rollouts) watchWorks(ctx context.Context) {
	judge := func(kind watch.EventType, work *workv1.ManifestWork) {
		if kind != watch.Deleted && work.Labels[names.LabelAddonName] == rollingAddon {
			r.judge(ctx, work.Namespace, versionIn(work))
		}
	}
	fleet.Follow(ctx, r.fleet.HubClient, &workv1.ManifestWorkList{}, judge)
}

// judge judges that the work of a cluster has a version: when it gets one, the clusters that got it before must run it.
func (r *rollouts) judge(ctx context.Context, name, version string) {
	r.mu.Lock()
	before := r.has[name]
	r.has[name] = version
	counts := before != "" && before != version
	if counts {
		r.report.Begun++
	}
	var others []string
	for other, has := range r.has {
		if counts && other != name && has == version {
			others = append(others, other)
		}
	}
	r.mu.Unlock()
	for _, other := range others {
		if err := runs(ctx, r.fleet.Cluster(other), version); err != nil && ctx.Err() == nil {
			r.violate("%s got version %s while %s moved: %v", name, version, other, err)
		}
	}
}
