package hashes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
)

func config(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "example.com", Resource: "things"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Name: name},
	}
}

func desired(name, hash string) *addonv1beta1.ConfigSpecHash {
	return &addonv1beta1.ConfigSpecHash{ConfigReferent: config(name).ConfigReferent, SpecHash: hash}
}

// status has a default and a configuration of a placement, with these hashes.
func status(first, second string) addonv1beta1.ClusterManagementAddOnStatus {
	kind := config("").ConfigGroupResource
	return addonv1beta1.ClusterManagementAddOnStatus{
		DefaultConfigReferences: []addonv1beta1.DefaultConfigReference{
			{ConfigGroupResource: kind, DesiredConfig: desired("default", first)}, {ConfigGroupResource: kind},
		},
		InstallProgressions: []addonv1beta1.InstallProgression{{
			ConfigReferences: []addonv1beta1.InstallConfigReference{{
				ConfigGroupResource: kind, DesiredConfig: desired("canary", second),
				LastAppliedConfig: desired("canary", "applied"),
			}},
		}},
	}
}

func TestHashes(t *testing.T) {
	for sentence, tc := range map[string]struct {
		states        addonconfig.States
		first, second string
	}{
		"both are known":                    {addonconfig.States{config("default"): {Hash: "1"}, config("canary"): {Hash: "2"}}, "1", "2"},
		"a missing one keeps its hash":      {addonconfig.States{config("default"): {Missing: true}, config("canary"): {Hash: "2"}}, "old", "2"},
		"an unread one keeps its hash":      {addonconfig.States{config("default"): {Hash: "1"}, config("canary"): {Unread: "no right"}}, "1", "old"},
		"kinds of others keep their hashes": {nil, "old", "old"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cma := &addonv1beta1.ClusterManagementAddOn{Status: status("old", "old")}
			after := conclude(facts{cma: cma, states: tc.states})
			assert.Equal(t, status(tc.first, tc.second), after.Status)
			assert.Equal(t, status("old", "old"), cma.Status, "the observed object stays as it is")
		})
	}
}
