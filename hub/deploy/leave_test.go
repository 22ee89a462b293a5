package deploy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func hookJob() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"name": "clean", "namespace": "ns", "annotations": map[string]any{names.AnnotationPreDelete: ""},
		},
	}}
}

// leavingFacts is an add-on of templates without a hook that has been leaving for a minute.
func leavingFacts(finalizers ...string) deletionFacts {
	at := metav1.NewTime(time.Unix(940, 0))
	f := factsOf(configMap("a", 1))
	f.addOn.DeletionTimestamp, f.addOn.Finalizers = &at, finalizers
	return deletionFacts{facts: f, ours: true, managed: true, hosts: map[string]*clusterv1.ManagedCluster{}}
}

// hookWork is the work of the hook as its agent reports it; phase "" means that it reports nothing.
func hookWork(t *testing.T, complete string) *workv1.ManifestWork {
	t.Helper()
	d, err := works.Divide([]*unstructured.Unstructured{hookJob()}, false)
	require.NoError(t, err)
	work := works.HookWork(setOf(leavingFacts().facts, works.Managed, works.PreDelete), d.Hooks[works.Managed])
	work.UID = "hook-uid"
	if complete == "" {
		return work
	}
	work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkAvailable, Status: metav1.ConditionTrue}}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "batch", Kind: "Job", Namespace: "ns", Name: "clean"},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{
			Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: &complete},
		}}},
	}}
	return work
}

// hosting is a work of the add-on in the namespace of a hosting cluster.
func hostingWork(name string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "host", Name: name, Labels: map[string]string{
		names.LabelAddonName: "a", names.LabelAddonNamespace: "c1",
	}}}
}

// Shows: hub/finalizer-last
func TestWhatAFinalizerGuardsIsDoneBeforeItGoes(t *testing.T) {
	tests := map[string]struct {
		finalizers []string
		change     func(*deletionFacts)
		dropped    []string
		creates    bool
		removes    int
		skipped    bool
		// says is part of the condition that tells what is waited for.
		says, reason string
		waits        time.Duration
	}{
		"without a hook the finalizer goes": {
			finalizers: []string{finalizerHook, finalizerHookOld}, change: func(*deletionFacts) {},
			dropped: []string{finalizerHook, finalizerHookOld},
		},
		"a hook is run first": {
			finalizers: []string{finalizerHook},
			change:     func(f *deletionFacts) { f.rendering.Objects = append(f.rendering.Objects, hookJob()) },
			creates:    true, says: "ManifestWork c1/addon-a-pre-delete", reason: reasonWaitingForHook,
		},
		"a hook that runs is waited for": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.works = append(f.works, hookWork(t, "False")) },
			says: "is not complete (ManifestWork c1/addon-a-pre-delete)", reason: reasonWaitingForHook,
		},
		"so is one of which nothing is known, and that the cluster is silent is said": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) {
				f.works = append(f.works, hookWork(t, ""))
				f.cluster = f.cluster.DeepCopy()
				meta.SetStatusCondition(&f.cluster.Status.Conditions, metav1.Condition{
					Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown, Reason: "Silent",
				})
			},
			says: "does not report", reason: reasonWaitingForHook,
		},
		"a hook that is complete is done with": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.works = append(f.works, hookWork(t, "True")) },
			dropped: []string{finalizerHook},
		},
		"without a cluster no hook can run": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.cluster = nil },
			dropped: []string{finalizerHook}, skipped: true,
		},
		"nor in a namespace that is being deleted": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) {
				f.namespaceDeleting, f.rendering.Objects = true, append(f.rendering.Objects, hookJob())
			},
			dropped: []string{finalizerHook}, skipped: true,
		},
		"without a hook nothing is skipped there": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.namespaceDeleting = true },
			dropped: []string{finalizerHook},
		},
		"what cannot be rendered may have a hook": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.renderErr = errors.New("no template") },
			says: "no template. To delete the add-on without the hook: kubectl annotate managedclusteraddon a -n c1 --overwrite " +
				"addon.spokelet.io/pre-delete-deadline=0s addon.spokelet.io/pre-delete-after-deadline=Skip",
			reason: reasonWaitingForHook,
		},
		"so may an add-on whose ClusterManagementAddOn is gone": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.managed = false },
			says: "create it again", reason: reasonWaitingForHook,
		},
		"what a hosting cluster has of the add-on is removed": {
			finalizers: []string{finalizerHostedObjects, finalizerHostedHook},
			change: func(f *deletionFacts) {
				f.works = []*workv1.ManifestWork{hostingWork("addon-a-deploy-hosting-c1-0"), hostingWork("addon-a-deploy-hosting-c1-1")}
			},
			dropped: []string{finalizerHostedHook, finalizerHostedObjects}, removes: 2,
		},
		"after the hook there": {
			finalizers: []string{finalizerHostedObjects, finalizerHostedHook},
			change: func(f *deletionFacts) {
				f.hosts["host"] = &clusterv1.ManagedCluster{}
				f.works = []*workv1.ManifestWork{
					hostingWork("addon-a-pre-delete-hosting-c1"), hostingWork("addon-a-deploy-hosting-c1-0"),
				}
			},
			says: "ManifestWork host/addon-a-pre-delete-hosting-c1", reason: reasonWaitingForHook,
		},
		"which cannot run where the hosting cluster is gone": {
			finalizers: []string{finalizerHostedObjects, finalizerHostedHookOld},
			change: func(f *deletionFacts) {
				f.works = []*workv1.ManifestWork{hostingWork("addon-a-pre-delete-hosting-c1")}
			},
			dropped: []string{finalizerHostedHookOld, finalizerHostedObjects}, removes: 1, skipped: true,
		},
		"the finalizers of another manager's add-on are his": {
			finalizers: []string{finalizerHook, finalizerHostedObjects}, change: func(f *deletionFacts) { f.ours = false },
			says: "the add-on manager that its author runs", reason: reasonForeignFinalizers,
		},
		"even where the cluster is gone": {
			finalizers: []string{finalizerHook}, change: func(f *deletionFacts) { f.ours, f.cluster = false, nil },
			says: "kubectl patch managedclusteraddon a -n c1", reason: reasonForeignFinalizers,
		},
		"who has a moment before the add-on says that it waits for him": {
			finalizers: []string{finalizerHook},
			change:     func(f *deletionFacts) { f.ours, f.now = false, time.Unix(941, 0) }, waits: 9 * time.Second,
		},
		"a finalizer that nobody here knows stays": {
			finalizers: []string{finalizerHook, "example.com/mine"}, change: func(*deletionFacts) {},
			dropped: []string{finalizerHook}, says: "finalizers example.com/mine: the client that put them there",
			reason: reasonForeignFinalizers,
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := leavingFacts(test.finalizers...)
			test.change(&f)
			p := decideDeletion(f)
			assert.ElementsMatch(t, test.dropped, p.drop)
			assert.Equal(t, len(p.drop) > 0, len(p.because) > 0)
			assert.Equal(t, test.creates, created(p) != nil)
			assert.Len(t, removed(p), test.removes)
			assert.Equal(t, test.skipped, p.skipped)
			if test.waits > 0 {
				assert.Equal(t, f.now.Add(test.waits), p.wake)
			}
			condition := meta.FindStatusCondition(p.conditions, names.ConditionAddOnDeleting)
			if test.says == "" {
				assert.Nil(t, condition)
				return
			}
			require.NotNil(t, condition)
			assert.Contains(t, condition.Message, test.says)
			assert.Equal(t, test.reason, condition.Reason)
			assert.Equal(t, metav1.ConditionFalse, condition.Status)
		})
	}
}

// Shows: hub/hook-work
func TestTheWorkOfAHookRunsTheHookAndNothingElse(t *testing.T) {
	f := leavingFacts(finalizerHook)
	f.rendering.Objects = append(f.rendering.Objects, hookJob())
	work := created(decideDeletion(f))
	require.NotNil(t, work)
	assert.Equal(t, "c1/addon-a-pre-delete", work.Namespace+"/"+work.Name)
	assert.Equal(t, map[string]string{names.LabelAddonName: "a"}, work.Labels)
	owner := controlledBy(f.addOn)
	owner.BlockOwnerDeletion = nil
	assert.Equal(t, []metav1.OwnerReference{owner}, work.OwnerReferences,
		"a deletion in the foreground must not delete the hook with the add-on")
	require.Len(t, works.ReadAll(work), 1)
	assert.Equal(t, works.Identity{Group: "batch", Kind: "Job", Namespace: "ns", Name: "clean"}, works.ReadAll(work)[0].Identity)
	assert.Equal(t, []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "ns", Name: "clean"},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}, {
			Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
				{Name: "HookFailed", Path: `.status.conditions[?(@.type=="Failed")].status`},
				{Name: "HookMessage", Path: `.status.conditions[?(@.type=="Failed")].message`},
			},
		}},
	}}, work.Spec.ManifestConfigs)
}

// created is the work of a hook that a plan creates; nil for none.
func created(p deletionPlan) *workv1.ManifestWork {
	for _, s := range p.works {
		if s.Verb == reconcile.Create && strings.Contains(s.After.Name, "-pre-delete") {
			return s.After
		}
	}
	return nil
}

// removed are the works that a plan deletes.
func removed(p deletionPlan) []string {
	var all []string
	for _, s := range p.works {
		if s.Verb == reconcile.Delete {
			all = append(all, s.Before.Namespace+"/"+s.Before.Name)
		}
	}
	return all
}

func TestWorksOnHostingClustersAreKnownByLabelAndName(t *testing.T) {
	f := leavingFacts()
	tests := map[string]struct {
		name          string
		hook, objects bool
	}{
		"objects":                       {"addon-a-deploy-hosting-c1-0", false, true},
		"a hook":                        {"addon-a-pre-delete-hosting-c1", true, false},
		"objects of another cluster":    {"addon-a-deploy-hosting-c11-0", false, false},
		"a work that a person labelled": {"mine", false, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.hook, setOf(f.facts, works.Hosting, works.PreDelete).Has(hostingWork(test.name)))
			assert.Equal(t, test.objects, setOf(f.facts, works.Hosting, works.Deploy).Has(hostingWork(test.name)))
			unlabelled := hostingWork(test.name)
			unlabelled.Labels = nil
			assert.False(t, setOf(f.facts, works.Hosting, works.Deploy).Has(unlabelled))
		})
	}
}

func TestAnAddOnIsKnownToBeOfTemplatesAfterItsManagementIsGone(t *testing.T) {
	template := addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"}
	addOn := leavingFacts().addOn
	assert.False(t, ofTemplates(addOn, template))
	addOn.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{template}
	assert.True(t, ofTemplates(addOn, template))
}

// controlledBy returns the reference to an add-on for a work that it owns.
func controlledBy(addOn *addonv1beta1.ManagedClusterAddOn) metav1.OwnerReference {
	owner := addonapi.Owner("", ownerKind, addOn)
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	return owner
}
