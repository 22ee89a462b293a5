package deploy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// answersAsAnAPIServer lets a fake hub answer a JSON patch whose test fails as an API server does.
func answersAsAnAPIServer(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	err := c.Patch(ctx, o, p, opts...)
	if err != nil && p.Type() == types.JSONPatchType {
		return apierrors.NewGenericServerResponse(422, "patch", schema.GroupResource{}, o.GetName(), err.Error(), 0, false)
	}
	return err
}

// hub/install has created the add-on. At that moment another program puts its own finalizer on it, and the
// hub manager admits it and gives it the finalizer of its pre-delete hook. The cache does not have the foreign one yet:
// the write of the status is a conflict, which is tried again with the live copy.
func TestAnAdmissionTakesNoFinalizerOfOthersThatTheCacheLacks(t *testing.T) {
	object := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "a", UID: "u", Generation: 1,
	}}
	hub := cacheOrHub(t, interceptor.Funcs{Patch: answersAsAnAPIServer}, object)
	r := &Reconciler{Client: hub, Bindings: hub, Live: hub, AddOns: addonapi.Client{Client: hub}}
	cached, err := r.AddOns.GetAddOn(t.Context(), client.ObjectKeyFromObject(object))
	require.NoError(t, err)

	live := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	live.Finalizers = append(live.Finalizers, "example.com/backup")
	require.NoError(t, hub.Update(t.Context(), live))

	f := facts{addOn: cached, configuration: addon.Configuration{
		Admitted: true,
		Record: func(after *addonv1beta1.ManagedClusterAddOn, _ addon.Progress) {
			after.Status.ConfigReferences = fixture.AddOn("c1", fixture.Has(fixture.DeploymentConfig("own"), "hash")).Status.ConfigReferences
		},
	}}
	p := plan{works: []workStep{{Verb: reconcile.Create, After: hostingWork("addon-a-deploy-0")}}}
	finalizers, changed := withGuards(cached.Finalizers, []string{finalizerHook})
	require.True(t, changed)
	p.finalizers = &finalizers
	// As Reconciler.deploy does.
	f.addOn, err = r.recordAdmission(t.Context(), f, p)
	require.NoError(t, err)
	done := r.act(t.Context(), f, p)
	t.Log(done.works)
	require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	t.Log(live.Finalizers)
	assert.Contains(t, live.Finalizers, "example.com/backup")
}

// A hosted add-on has a long name. Its works could never be created, as a label of theirs is its name; its finalizer was
// put before them. The API server answers 400 to a list by such a label.
func TestAnAddOnWithALongNameCanBeDeleted(t *testing.T) {
	for _, length := range []int{63, 64} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.Name = strings.Repeat("a", length)
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedObjects}
			leaving.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}
			objects := []client.Object{leaving, ownNamespace("c1"), ownNamespace("host"), clusterThatIs("c1", true), clusterThatIs("host", true)}
			hub := cacheOrHub(t, interceptor.Funcs{Patch: answersAsAnAPIServer}, objects...)
			// What an API server does with a selector.
			live := interceptor.NewClient(hub, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					o := client.ListOptions{}
					o.ApplyOptions(opts)
					if o.LabelSelector != nil {
						if _, err := labels.Parse(o.LabelSelector.String()); err != nil {
							return apierrors.NewBadRequest(err.Error())
						}
					}
					return c.List(ctx, list, opts...)
				},
			})
			r := behindIn(hub, live, only{})
			var err error
			for range 5 {
				_, err = r.Reconcile(t.Context(), reconcile.Request("c1", leaving.Name)[0])
			}
			t.Log("pass:", err)
			after := &addonv1alpha1.ManagedClusterAddOn{}
			err = hub.Get(t.Context(), client.ObjectKeyFromObject(leaving), after)
			assert.True(t, apierrors.IsNotFound(err), "the add-on stays for ever with %v", after.Finalizers)
		})
	}
}

// registeredAndHooked is an agent with a registration, and with a pre-delete hook for which the add-on needs a finalizer.
type registeredAndHooked struct{ permitted }

func (z registeredAndHooked) Agent(context.Context, string) (addon.Agent, bool, error) {
	return z, true, nil
}

func (registeredAndHooked) Render(ctx context.Context, r addon.Request) (addon.Rendering, error) {
	return hooked{}.Render(ctx, r)
}

// The agent of the cluster says in the status with which driver it registers the add-on, a moment before the first pass
// of the hub manager puts a finalizer on the add-on. The cache has neither.
func TestTheDriverThatAnAgentChoseIsNotPutBack(t *testing.T) {
	for sentence, needs := range map[string]bool{"control: the add-on has its finalizer": false, "it gets its finalizer": true} {
		t.Run(sentence, func(t *testing.T) {
			object := addOnAt("c1")
			object.Generation = 1
			if !needs {
				object.Finalizers = []string{finalizerHook}
			}
			hub := cacheOrHub(t, interceptor.Funcs{Patch: answersAsAnAPIServer}, object, ownNamespace("c1"), clusterThatIs("c1", true))
			cached := &addonv1alpha1.ManagedClusterAddOn{}
			key := client.ObjectKeyFromObject(object)
			require.NoError(t, hub.Get(t.Context(), key, cached))
			agents := cached.DeepCopy()
			agents.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client"}}
			agents.Status.KubeClientDriver = "token"
			require.NoError(t, hub.Status().Update(t.Context(), agents))
			cache := interceptor.NewClient(hub, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if a, is := o.(*addonv1alpha1.ManagedClusterAddOn); is {
						cached.DeepCopyInto(a)
						return nil
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			_, err := behindIn(cache, hub, registeredAndHooked{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			live := &addonv1alpha1.ManagedClusterAddOn{}
			require.NoError(t, hub.Get(t.Context(), key, live))
			t.Log(live.Finalizers, live.Status.Registrations, live.Status.KubeClientDriver)
			assert.Equal(t, "token", live.Status.KubeClientDriver, "what the agent wrote is gone, and no conflict was noticed")
		})
	}
}

// Who may edit the add-on of one cluster writes a long record of hosting clusters, with the finalizer, and deletes it.
func TestARecordOfHostsThatATenantWroteCostsFewRequests(t *testing.T) {
	var hosts []string
	size := 0
	for n := 0; size < 250_000; n++ { // all annotations of an object may have 256 KiB
		hosts = append(hosts, strconv.FormatInt(int64(n), 36))
		size += len(hosts[n]) + 1
	}
	leaving := addOnAt("c1")
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedObjects}
	leaving.Annotations = map[string]string{names.AnnotationHostedOn: strings.Join(hosts, ",")}
	requests := 0
	hub := cacheOrHub(t, interceptor.Funcs{Patch: answersAsAnAPIServer}, leaving, ownNamespace("c1"), clusterThatIs("c1", true))
	live := interceptor.NewClient(hub, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if requests++; requests > 10 {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	_, err := behindIn(hub, live, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	assert.Less(t, requests, 100, "one pass lists so often from the API server, one after the other")
}

// Namespace "shared" was once that of a cluster of this name; an administrator took the label off, and the author's role
// is bound there for the agents of each cluster. The hub manager starts with an API server that is behind for
// namespaces.
func TestNoRoleIsTakenByAnEarlierCopyOfTheNamespaceThatItIsIn(t *testing.T) {
	for sentence, behind := range map[string]bool{"control: the cache has the namespace as it is": false, "the cache is behind": true} {
		t.Run(sentence, func(t *testing.T) {
			now := ownNamespace("shared")
			now.Labels = nil
			cached := now
			if behind {
				cached = ownNamespace("shared")
			}
			binding := roleBinding("shared", "c1", "a")
			binding.UID = "b"
			objects := []client.Object{addOnAt("c1"), ownNamespace("c1"), clusterThatIs("c1", true), binding}
			cache := cacheOrHub(t, interceptor.Funcs{Patch: answersAsAnAPIServer}, append(objects, cached)...)
			live := cacheOrHub(t, interceptor.Funcs{}, append(objects, now)...)
			_, err := behindIn(cache, live, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			var bindings rbacv1.RoleBindingList
			require.NoError(t, cache.List(t.Context(), &bindings, client.InNamespace("shared")))
			assert.NotEmpty(t, bindings.Items, "the agent of c1 lost its role by a label that the API server does not have any more")
		})
	}
}
