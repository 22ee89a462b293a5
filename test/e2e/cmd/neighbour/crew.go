package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
)

const (
	crewName = "crew"
	// crewNamespace is the namespace of the manager on the hub, and of the agent on managed clusters.
	crewNamespace = "crew"
	// crewQuiet marks an add-on whose condition ManifestApplied the manager does not write.
	crewQuiet = "crew.example.com/quiet"
	// crewCleanup is a finalizer that only the manager knows.
	crewCleanup = "crew.example.com/cleanup"
	// preDelete is the finalizer of add-ons with a Job that runs before they go.
	preDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// crewGroup is the group of all agents of the add-on on the hub.
	crewGroup = "crew"
)

// crewManager is the hub manager of add-on crew. It works as managers that are made with addon-framework do, by clients
// of the API and nothing else: it registers the agents under users of its own, approves their certificates, deploys
// by ManifestWorks, runs a Job before an add-on goes, and has a finalizer of its own. It looks once a second, where a
// manager of use would watch.
func crewManager(ctx context.Context, o options) error {
	config, err := o.hub()
	if err != nil {
		return err
	}
	m := &crew{image: o.image}
	if m.kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if m.addOns, err = addonclient.NewForConfig(config); err != nil {
		return fmt.Errorf("building a client of add-ons: %w", err)
	}
	if m.works, err = workclient.NewForConfig(config); err != nil {
		return fmt.Errorf("building a client of works: %w", err)
	}
	return forever(ctx, m.round)
}

type crew struct {
	kube   kubernetes.Interface
	addOns addonclient.Interface
	works  workclient.Interface
	image  string
}

// round looks at all add-ons and certificate requests once.
func (m *crew) round(ctx context.Context) error {
	list, err := m.addOns.AddonV1alpha1().ManagedClusterAddOns("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing add-ons: %w", err)
	}
	errs := []error{m.approve(ctx)}
	for i := range list.Items {
		addOn := &list.Items[i]
		switch {
		case addOn.Name != crewName:
		case addOn.DeletionTimestamp != nil:
			errs = append(errs, m.remove(ctx, addOn))
		default:
			errs = append(errs, m.deploy(ctx, addOn))
		}
	}
	return errors.Join(errs...)
}

// deploy gives an add-on its finalizers, its place in the list, its registration and its work.
func (m *crew) deploy(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if !slices.Contains(addOn.Finalizers, preDelete) || !slices.Contains(addOn.Finalizers, crewCleanup) {
		// What else changes is for the next round.
		addOn.Finalizers = slices.Compact(slices.Sorted(slices.Values(append(addOn.Finalizers, preDelete, crewCleanup))))
		_, err := m.addOns.AddonV1alpha1().ManagedClusterAddOns(addOn.Namespace).Update(ctx, addOn, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("adding finalizers: %w", err)
		}
		return nil
	}
	if err := (record{namespace: crewNamespace, name: "crew-" + addOn.Namespace}).write(ctx, m.kube, nil); err != nil {
		return err
	}
	if err := m.bind(ctx, addOn); err != nil {
		return err
	}
	work, err := m.applyWork(ctx, crewWork(addOn, m.image))
	if err != nil {
		return err
	}
	return m.report(ctx, addOn, work)
}

// bind lets the agent of a cluster write its record in the namespace of that cluster.
func (m *crew) bind(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	_, err := m.kube.RbacV1().RoleBindings(addOn.Namespace).Create(ctx, crewBinding(addOn), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the role of the agent: %w", err)
	}
	return nil
}

// remove runs the Job of an add-on that is being deleted, then strikes it off the list, and lets it go.
func (m *crew) remove(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if slices.Contains(addOn.Finalizers, preDelete) {
		work, err := m.applyWork(ctx, crewHook(addOn, m.image))
		if err != nil {
			return err
		}
		if !jobComplete(work) {
			return nil
		}
		return m.dropFinalizer(ctx, addOn, preDelete)
	}
	err := m.kube.CoreV1().ConfigMaps(crewNamespace).Delete(ctx, "crew-"+addOn.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("striking off the list: %w", err)
	}
	return m.dropFinalizer(ctx, addOn, crewCleanup)
}

func (m *crew) dropFinalizer(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, name string) error {
	if !slices.Contains(addOn.Finalizers, name) {
		return nil
	}
	addOn.Finalizers = slices.DeleteFunc(addOn.Finalizers, func(f string) bool { return f == name })
	_, err := m.addOns.AddonV1alpha1().ManagedClusterAddOns(addOn.Namespace).Update(ctx, addOn, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing finalizer %s: %w", name, err)
	}
	return nil
}

// crewAgent is the agent of add-on crew: it says on the hub as whom it is known there.
func crewAgent(ctx context.Context, o options) error {
	hub, err := o.client()
	if err != nil {
		return err
	}
	return forever(ctx, func(ctx context.Context) error {
		return crewSays(ctx, o, hub, "at", "work")
	})
}

// crewGoodbye is the Job of the add-on. It does the same once, with another word.
func crewGoodbye(ctx context.Context, o options) error {
	hub, err := o.client()
	if err != nil {
		return err
	}
	return crewSays(ctx, o, hub, "said", "goodbye")
}

func crewSays(ctx context.Context, o options, hub kubernetes.Interface, key, word string) error {
	who, err := whoAmI(ctx, hub)
	if err != nil {
		return err
	}
	return record{namespace: o.cluster, name: crewName}.write(ctx, hub, map[string]string{key: word, "user": who.Username})
}

// condition is a condition of an add-on that the manager writes.
func condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// crewUser is the user as whom the agent of a cluster is known on the hub.
func crewUser(cluster string) string { return "crew:" + cluster }

// hubSecret is the Secret with the credential of the agent.
const hubSecret = crewName + "-hub-kubeconfig"

// onHub is where pods of the add-on find that Secret.
func onHub() (corev1.Volume, corev1.VolumeMount) {
	return corev1.Volume{Name: "hub", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: hubSecret},
	}}, corev1.VolumeMount{Name: "hub", MountPath: "/hub", ReadOnly: true}
}
