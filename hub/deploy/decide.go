package deploy

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// decide returns the plan for the facts.
func decide(f facts) plan {
	p := plan{worksErr: cmp.Or(f.accepted(), f.foreign, f.unhosted(), f.renderErr), foundHost: f.foundHost}
	p.renames = hosting.Renames(f.addOn, f.foundHost)
	if f.registrationsErr == nil {
		p.registrations = mergeRegistrations(f.cluster.Name, f.addOn, f.registrations)
		p.pending = pendingPermissions(f, p.registrations)
	}
	switch {
	case f.accepted() != nil: // Its agents lose what they have (facts.ended).
	case f.setupErr != nil, f.withheld != nil:
		p.bindings = keepFormer(f)
	case f.registrationsErr != nil, f.refused != nil:
	case p.pending != "":
		p.bindings = append(keepFormer(f), dropUnasked(f)...)
	default:
		p.bindings = planBindings(f, account(f, p.registrations))
	}
	p.bindings = append(p.bindings, dropBindings(f.obsolete)...)
	var w worksPlan
	switch {
	case p.worksErr == nil && f.current != nil:
		w = *f.current
	case p.worksErr == nil:
		w, p.worksErr = planWorks(f)
	}
	if p.worksErr != nil {
		if wait := (*works.WaitError)(nil); errors.As(p.worksErr, &wait) {
			p.works = works.Left(f.addOn, f.works)
		}
		p.kept = ownWorks(f)
		return p
	}
	p.works = slices.Concat(works.Left(f.addOn, f.works), w.steps, planLeftHooks(f))
	p.kept, p.waits, p.verified = w.kept, w.waits, w.verified
	if finalizers, changed := withGuards(f.addOn.Finalizers, w.guards); changed {
		p.finalizers = &finalizers
	}
	if hosts, changed := hosting.Record(f.addOn, f.works, nextHost(f)); changed {
		p.hosts = &hosts
	}
	return p
}

// nextHost returns the hosting cluster on which works may be written now; empty for none.
func nextHost(f facts) string {
	if hostOf(f) == hostReady {
		return hostName(f)
	}
	return ""
}

// pendingPermissions returns why the agent gets no roles yet, in the words of OCM (docs/reference/registration.md,
// "Permissions of an add-on"): an agent with the driver token must first report that it uses the ServiceAccount of the
// add-on.
func pendingPermissions(f facts, registrations []addonv1beta1.RegistrationConfig) string {
	if len(f.setup.Permissions) == 0 {
		return ""
	}
	subject := accountOf(f)
	bound := slices.ContainsFunc(f.bindings, func(binding *rbacv1.RoleBinding) bool {
		return slices.Contains(binding.Subjects, subject)
	})
	for _, r := range registrations {
		if byToken(r) && (r.KubeClient.Subject.User == "" || (!f.accountOurs && !bound)) {
			return "registration subject not ready"
		}
	}
	return ""
}

// account returns the ServiceAccount of an agent with the driver token, as long as it is ours; nil for any other agent.
// It is computed here, never read from a status.
func account(f facts, registrations []addonv1beta1.RegistrationConfig) *rbacv1.Subject {
	if !f.accountOurs || !slices.ContainsFunc(registrations, byToken) {
		return nil
	}
	subject := accountOf(f)
	return &subject
}

// accountOf returns the ServiceAccount of the add-on on the cluster, no matter who made it.
func accountOf(f facts) rbacv1.Subject {
	return rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: f.cluster.Name, Name: token.ServiceAccountName(f.addOn.Name),
	}
}

// byToken reports whether a registration is for a token of a ServiceAccount.
func byToken(r addonv1beta1.RegistrationConfig) bool {
	return r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == token.Driver
}

// mergeRegistrations returns the desired status.registrations: those that the hub wants, with the driver that the agent
// of the cluster has chosen (docs/reference/hub.md, "Registrations"). Of all that an agent may have written, only two
// values are used: a driver and, with the driver token, the one subject that it allows.
func mergeRegistrations(
	cluster string, addOn *addonv1beta1.ManagedClusterAddOn, wanted []addonv1beta1.RegistrationConfig,
) []addonv1beta1.RegistrationConfig {
	var stored []*addonv1beta1.KubeClientConfig
	for i := range addOn.Status.Registrations {
		if r := &addOn.Status.Registrations[i]; r.Type == addonv1beta1.KubeClient {
			stored = append(stored, r.KubeClient)
		}
	}
	merged := make([]addonv1beta1.RegistrationConfig, 0, len(wanted))
	for i := range wanted {
		r := *wanted[i].DeepCopy()
		if r.Type == addonv1beta1.KubeClient {
			var before *addonv1beta1.KubeClientConfig
			if len(stored) > 0 {
				before, stored = stored[0], stored[1:]
			}
			r.KubeClient = mergeKubeClient(cluster, addOn.Name, r.KubeClient, before)
		}
		merged = append(merged, r)
	}
	return merged
}

func mergeKubeClient(
	cluster, addOn string, wanted, stored *addonv1beta1.KubeClientConfig,
) *addonv1beta1.KubeClientConfig {
	if wanted == nil {
		wanted = &addonv1beta1.KubeClientConfig{}
	}
	if stored == nil {
		stored = &addonv1beta1.KubeClientConfig{}
	}
	if stored.Driver != "" {
		wanted.Driver = stored.Driver
	}
	subject := wanted.Subject.BaseSubject
	switch wanted.Driver {
	case "":
	case token.Driver:
		subject = addonv1beta1.BaseSubject{}
		if user := token.User(cluster, addOn); stored.Subject.User == user && len(stored.Subject.Groups) == 0 {
			subject.User = user
		}
	default:
		if subject.User == "" && len(subject.Groups) == 0 {
			subject.User = csr.AddonUser(cluster, addOn, addOn)
			subject.Groups = csr.AddonGroups(cluster, addOn)
		}
	}
	wanted.Subject.BaseSubject = subject
	return wanted
}

// steadyHealth returns the health probe to use in this pass, and the probe that the template asks for if it differs.
// The annotation that selects the probe is not part of a rollout, so an edit of it, or an upgrade of the hub, would
// change the health of a whole fleet at once. It takes effect with the next rollout of the template. The probe of an
// add-on without a template is in the program of its author, and counts at once.
func steadyHealth(f facts) (use, pending addon.HealthProbe) {
	isWanted := f.setup.Health
	own := ownWorks(f)
	if f.setupErr != nil || len(own) == 0 || !byTemplate(f, own) || (f.renderErr == nil && rollsOut(f, own)) {
		return isWanted, ""
	}
	mode := f.addOn.Status.HealthCheck.Mode
	switch {
	case isWanted == addon.HealthLease && mode == addonv1beta1.HealthCheckModeCustomized:
		return addon.HealthWorkloads, isWanted
	case isWanted == addon.HealthWorkloads && mode == addonv1beta1.HealthCheckModeLease && unprobed(own):
		return addon.HealthLease, isWanted
	}
	return isWanted, ""
}

// byTemplate reports whether the add-on is made of a template, or was until now.
func byTemplate(f facts, own []*workv1.ManifestWork) bool {
	return len(templateEntries(works.ConfigHashes(f.rendering.Configs))) > 0 ||
		slices.ContainsFunc(own, func(work *workv1.ManifestWork) bool {
			return len(templateEntries(work.Annotations[names.AnnotationConfigSpecHash])) > 0
		})
}

// rollsOut reports whether this pass brings different content of a template to the cluster.
func rollsOut(f facts, own []*workv1.ManifestWork) bool {
	want, order := templateEntries(works.ConfigHashes(f.rendering.Configs)), works.ConfigOrder(f.rendering.Configs)
	return slices.ContainsFunc(own, func(work *workv1.ManifestWork) bool {
		had := works.OrderOf(work)
		return had != "" && !maps.Equal(templateEntries(had), templateEntries(order)) ||
			!maps.Equal(want, templateEntries(work.Annotations[names.AnnotationConfigSpecHash]))
	})
}

// templateEntries returns what the annotation of a work with the hashes, or the order, of configurations has of
// templates.
func templateEntries(annotation string) map[string]string {
	var all map[string]string
	if json.Unmarshal([]byte(annotation), &all) != nil {
		return nil
	}
	of := schema.GroupResource(confighash.Template()).String()
	maps.DeleteFunc(all, func(key, _ string) bool { kind, _, _ := strings.Cut(key, "/"); return kind != of })
	return all
}

// unprobed reports whether works were rolled out without feedback rules for their workloads. The mode in the status
// alone does not show it, because Lease is also the API default.
func unprobed(own []*workv1.ManifestWork) bool {
	found := false
	for _, work := range own {
		if works.IsSummed(work) {
			return false // There are so many that it is one of ours.
		}
		for i := range work.Spec.Workload.Manifests {
			s, err := works.Read(&work.Spec.Workload.Manifests[i])
			if err != nil {
				continue
			}
			o := healthObject(s)
			if !health.Judges(addon.HealthWorkloads, o) {
				continue
			}
			if health.Asks(addon.HealthWorkloads, o, work) {
				return false
			}
			found = true
		}
	}
	return found
}
