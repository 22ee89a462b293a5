package deploy

import (
	"cmp"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Finalizers of add-ons, in their present and their former spelling.
const (
	finalizerHook             = addonv1beta1.AddonPreDeleteHookFinalizer
	finalizerHookOld          = addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer
	finalizerHostedHook       = addonv1beta1.AddonHostingPreDeleteHookFinalizer
	finalizerHostedHookOld    = addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer
	finalizerHostedObjects    = addonv1beta1.AddonHostingManifestFinalizer
	finalizerHostedObjectsOld = addonv1alpha1.AddonDeprecatedHostingManifestFinalizer
)

// hostState holds what is known about the hosting cluster of an add-on.
type hostState int

const (
	// hostNone is default mode: the add-on names no hosting cluster.
	hostNone hostState = iota
	// hostMissing means that there is no such cluster.
	hostMissing
	// hostDeleting means that the cluster is being deleted.
	hostDeleting
	// hostRefused means that the hub does not accept the cluster: nothing is written there, and nothing deleted.
	hostRefused
	// hostUnwilling means that the cluster does not consent to host the add-on: likewise.
	hostUnwilling
	// hostPending means that the add-on asks for a hosting cluster, and none is found yet: likewise.
	hostPending
	// hostDiffers means that the agent of the managed cluster runs on another one, and nothing of the add-on is there yet:
	// likewise.
	hostDiffers
	hostReady
)

// hostOf returns the state of the hosting cluster.
func hostOf(f facts) hostState {
	switch {
	case f.pendingHost != "":
		return hostPending
	case hostName(f) == "":
		return hostNone
	case f.host == nil:
		return hostMissing
	case !f.host.DeletionTimestamp.IsZero():
		return hostDeleting
	case !f.host.Spec.HubAcceptsClient:
		return hostRefused
	case !f.rules.Consents(f.host, f.addOn):
		return hostUnwilling
	case hosting.Differs(f.addOn, f.cluster) && !slices.ContainsFunc(f.addOn.Finalizers, hosting.IsFinalizer):
		return hostDiffers
	}
	return hostReady
}

// noHostError says that an add-on is held back, because its hosting cluster is not known, or not the right one.
type noHostError struct{ why string }

// Error implements error.
func (e *noHostError) Error() string { return e.why }

// unhosted returns why nothing is deployed until the hosting cluster is known; nil where it is, or none is named.
func (f facts) unhosted() error {
	switch hostOf(f) {
	case hostPending:
		return &noHostError{f.pendingHost}
	case hostDiffers:
		return &noHostError{differs(f)}
	case hostNone, hostMissing, hostDeleting, hostRefused, hostUnwilling, hostReady:
	}
	return nil
}

// untouched reports whether nothing is written to a hosting cluster, and nothing deleted from it.
func (s hostState) untouched() bool {
	return s == hostRefused || s == hostUnwilling || s == hostPending || s == hostDiffers
}

// hostName returns the name of the hosting cluster; empty in default mode.
func hostName(f facts) string { return f.addOn.Annotations[names.AnnotationHostingCluster] }

// setOf returns a set of works of the add-on. The namespace of the hosting cluster is empty in default mode.
func setOf(f facts, side works.Side, purpose works.Purpose) works.Set {
	set := works.Set{
		AddOn: f.addOn, Owners: f.owners, Side: side, Purpose: purpose, Namespace: f.addOn.Namespace,
	}
	if side == works.Hosting {
		set.Namespace = hostName(f)
	}
	return set
}

// sideOf returns the side of one of our works.
func sideOf(addOn *addonv1beta1.ManagedClusterAddOn, work *workv1.ManifestWork) works.Side {
	for _, purpose := range []works.Purpose{works.Deploy, works.PreDelete} {
		set := works.Set{AddOn: addOn, Side: works.Hosting, Purpose: purpose}
		if _, hosting := set.Index(work.Name); hosting {
			return works.Hosting
		}
	}
	return works.Managed
}

// ownWorks returns the deploy works that are ours, on both sides.
func ownWorks(f facts) []*workv1.ManifestWork {
	return slices.Concat(setOf(f, works.Managed, works.Deploy).Select(f.works),
		setOf(f, works.Hosting, works.Deploy).Select(f.works))
}

// planWorks plans the ManifestWorks for the objects of the agent on both sides. On an error none may be touched.
func planWorks(f facts) (worksPlan, error) {
	state := hostOf(f)
	d, err := works.Divide(f.rendering.Objects, state != hostNone)
	if err != nil {
		return worksPlan{}, err
	}
	inputs := func(content string) string { return fingerprint(f, cmp.Or(f.key, content)) }
	o := works.OptionsOf(f.rendering, health.Options(f.setup, f.rendering), inputs, d)
	o.By, o.Keeps = f.by, keepsDefinitions(f)
	managed, away := setOf(f, works.Managed, works.Deploy), setOf(f, works.Hosting, works.Deploy)
	wanted, hosted := d.Deploy[works.Managed], d.Deploy[works.Hosting]
	if state != hostReady {
		away.Namespace, hosted = "", nil
	}
	there := away.Select(f.works)
	var keptHere, keptThere []works.Manifest
	if here := inNamespace(there, managed.Namespace); away.Namespace == managed.Namespace || len(here) > 0 {
		// Both sides are the same cluster, or were. An object that changes sides stays in its old work until the new one is
		// applied.
		left := managed.Select(f.works)
		switch away.Namespace {
		case managed.Namespace:
			keptHere, keptThere = works.Hold(hosted, left, here), works.Hold(wanted, here, left)
		case "":
			away.Namespace, keptThere = managed.Namespace, works.Hold(wanted, here, left)
		}
	}
	hosted = slices.Concat(hosted, keptThere)
	p := worksPlan{guards: guards(o.Hooks, state, len(there) > 0 || len(hosted) > 0)}
	wanted = slices.Concat(wanted, keptHere)
	here, err := works.Plan(managed, wanted, o.Holding(keptHere), f.works)
	if err != nil {
		return worksPlan{}, err
	}
	p.add(works.Managed, here)
	if state.untouched() {
		p.kept = append(p.kept, there...)
		return p, nil
	}
	hostedSteps, err := works.Plan(away, hosted, o.Holding(keptThere), f.works)
	if err != nil {
		return worksPlan{}, err
	}
	p.add(works.Hosting, hostedSteps)
	if len(p.steps) == 0 && f.key != "" {
		if standing, current := works.Current(f.works, o, steadySets(f)...); current && needsVerifying(f, standing) {
			p.verified = standing.Sum
		}
	}
	return p, nil
}

// steadySets returns the sets whose works may be current: those of both sides, where they are different clusters. There
// are none where objects may be moving between clusters.
func steadySets(f facts) []works.Set {
	managed, hosting := setOf(f, works.Managed, works.Deploy), setOf(f, works.Hosting, works.Deploy)
	switch hostOf(f) {
	case hostNone:
		if len(hosting.Select(f.works)) == 0 {
			return []works.Set{managed}
		}
	case hostReady:
		if hosting.Namespace != managed.Namespace {
			return []works.Set{managed, hosting}
		}
	case hostMissing, hostDeleting, hostRefused, hostUnwilling, hostPending, hostDiffers:
	}
	return nil
}

// needsVerifying reports whether works count as current only after this process has rendered the same: those of another
// version of the code, and those of two sides, of which either may rightly have none.
func needsVerifying(f facts, standing works.Standing) bool {
	return standing.Foreign || hostOf(f) != hostNone
}

// currentWorks returns the plan that changes nothing, if the works are what was rendered from the present inputs; nil
// otherwise.
func currentWorks(f facts) *worksPlan {
	standing, current := works.Current(f.works, works.Options{
		Inputs: fingerprint(f, f.key), By: f.by,
		Hashes: works.ConfigHashes(f.rendering.Configs), Order: works.ConfigOrder(f.rendering.Configs),
	}, steadySets(f)...)
	if f.key == "" || !current {
		return nil
	}
	p := &worksPlan{kept: ownWorks(f)}
	if needsVerifying(f, standing) {
		if p.verified = standing.Sum; p.verified != f.verified {
			return nil
		}
	}
	hosted := setOf(f, works.Hosting, works.Deploy).Select(f.works)
	p.guards = guards(standing.Hooks, hostOf(f), len(hosted) > 0)
	return p
}

// fingerprint identifies all that the works are made of. key stands for what the agent rendered, or renders from.
func fingerprint(f facts, key string) string {
	if keepsDefinitions(f) {
		key += "/keeps" // Such works keep definitions that nothing else renders.
	}
	return works.Fingerprint(key, f.rendering.Configs, f.setup.Health, hostName(f))
}

// inNamespace returns the works of a namespace.
func inNamespace(all []*workv1.ManifestWork, namespace string) []*workv1.ManifestWork {
	return slices.DeleteFunc(slices.Clone(all), func(w *workv1.ManifestWork) bool { return w.Namespace != namespace })
}

// guards returns the finalizers that an add-on needs: for the hooks of each side, and for works on a hosting cluster,
// which no owner reference deletes.
func guards(hooks []works.Side, state hostState, objects bool) []string {
	var all []string
	if slices.Contains(hooks, works.Managed) {
		all = append(all, finalizerHook)
	}
	if slices.Contains(hooks, works.Hosting) && (state == hostReady || (state.untouched() && objects)) {
		all = append(all, finalizerHostedHook)
	}
	if objects {
		all = append(all, finalizerHostedObjects)
	}
	return all
}

// withGuards returns the finalizers of an add-on with exactly these guards in their present spelling; those of others
// stay. False means that nothing changes.
func withGuards(have, want []string) ([]string, bool) {
	all := slices.DeleteFunc(slices.Clone(have), func(finalizer string) bool {
		return isOCMFinalizer(finalizer) && !slices.Contains(want, finalizer)
	})
	for _, finalizer := range want {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	return all, !slices.Equal(all, have)
}

// unneeded returns the finalizers of ours that an add-on lost without another spelling in their place, and why.
func unneeded(before, after []string) (removed []string, because string) {
	var reasons []string
	for _, kind := range []struct{ present, former, because string }{
		{finalizerHook, finalizerHookOld, "The add-on has no pre-delete hook."},
		{finalizerHostedHook, finalizerHostedHookOld, "The add-on has no pre-delete hook on a hosting cluster."},
		{finalizerHostedObjects, finalizerHostedObjectsOld, "Nothing of the add-on is on a hosting cluster."},
	} {
		if slices.Contains(after, kind.present) {
			continue
		}
		lost := slices.DeleteFunc([]string{kind.present, kind.former}, func(name string) bool {
			return !slices.Contains(before, name)
		})
		if len(lost) > 0 {
			removed, reasons = append(removed, lost...), append(reasons, kind.because)
		}
	}
	return removed, strings.Join(reasons, " ")
}

// planLeftHooks plans the deletion of works of hooks on hosting clusters that an earlier add-on of this name left: the
// next hook would look complete.
func planLeftHooks(f facts) []workStep {
	var steps []workStep
	for _, work := range setOf(f, works.Hosting, works.PreDelete).Select(f.works) {
		if work.DeletionTimestamp == nil {
			steps = append(steps, workStep{Verb: reconcile.Delete, Before: work})
		}
	}
	return steps
}

// isOCMFinalizer reports whether an add-on manager of OCM puts this finalizer on add-ons. Ours puts the same there.
func isOCMFinalizer(finalizer string) bool {
	return slices.Contains([]string{
		finalizerHook, finalizerHookOld, finalizerHostedHook, finalizerHostedHookOld, finalizerHostedObjects,
		finalizerHostedObjectsOld,
	}, finalizer)
}

// isGuard reports whether a finalizer keeps an add-on because of something that this package does before it goes.
func isGuard(finalizer string) bool {
	return isOCMFinalizer(finalizer) || finalizer == names.FinalizerDependents
}

// keepsDefinitions reports whether the works of an add-on keep definitions that nothing renders: it returns from a
// content that was undone or, whatever specs and policy say by now, it has still what it returned to.
func keepsDefinitions(f facts) bool {
	hashes := works.ConfigHashes(f.configuration.Choice.Configs)
	return f.configuration.Choice.Undo || slices.ContainsFunc(ownWorks(f), func(work *workv1.ManifestWork) bool {
		return works.Keeps(work, hashes)
	})
}
