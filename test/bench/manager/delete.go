package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// hook installs all add-ons once more, with a pre-delete hook on each cluster.
func (r *run) hook(ctx context.Context) error {
	var err error
	if r.revision, err = r.prepareAs(ctx, hooked); err != nil {
		return err
	}
	for i := range r.Size.AddOns {
		placements := management(addOnName(i), r.revision).Spec.InstallStrategy.Placements
		err := r.edit(ctx, addOnName(i), func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Spec.InstallStrategy.Placements = placements
		})
		if err != nil {
			return err
		}
	}
	if _, err := r.awaitCompleted(ctx, r.revision); err != nil {
		return err
	}
	return r.quiet(ctx)
}

// delete deletes the ClusterManagementAddOns of add-ons with hooks, and measures until nothing is left. The add-ons
// outlive what defines them until their hooks have run, so the hub manager asks what each of them ran with when there
// is no definition any more.
func (r *run) delete(ctx context.Context) error {
	const name = "delete with hooks"
	c, err := r.cost(ctx, "delete", r.deleteAll)
	if err != nil {
		return err
	}
	all := r.Size.all()
	r.perDeletion = c.processor / time.Duration(all)
	r.Time(r.title+name, c.took, 0)
	r.Number(r.title+name+", requests per add-on", float64(c.requests.Count)/float64(all), 1, "", 0)
	r.Note(r.title+name+", processor per add-on", r.perDeletion.Round(10*time.Microsecond).String(), "", true)
	r.compareDeletion()
	return nil
}

// deleteAll deletes all ClusterManagementAddOns as kubectl does, so that the garbage collector deletes the add-ons, and
// returns when the last one is gone with its works.
func (r *run) deleteAll(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	for i := range r.Size.AddOns {
		cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOnName(i)}}
		if err := r.hub.Delete(ctx, cma); err != nil {
			return 0, fmt.Errorf("deleting add-on %s: %w", cma.Name, err)
		}
	}
	if err := r.awaitGone(ctx, &addonv1alpha1.ManagedClusterAddOnList{}); err != nil {
		return 0, err
	}
	if err := r.awaitGone(ctx, &workv1.ManifestWorkList{}); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// hooked is the template of an add-on at a revision, with a Job that runs before the add-on is deleted.
func hooked(addOn string, revision int) (*addonv1alpha1.AddOnTemplate, error) {
	t, err := template(addOn, revision)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(&batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.NamespaceAgentAddon, Name: addOn + "-clean-up",
			Annotations: map[string]string{names.AnnotationPreDelete: ""},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: addOn, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "clean-up", Image: fmt.Sprintf("example.com/agent:r%d", revision), Args: []string{"clean-up"},
			}},
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the hook of template %s: %w", t.Name, err)
	}
	t.Spec.AgentSpec.Workload.Manifests = append(t.Spec.AgentSpec.Workload.Manifests,
		workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	return t, nil
}
