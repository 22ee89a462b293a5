package deploy

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/token"
)

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
