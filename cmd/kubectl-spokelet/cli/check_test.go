package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/version"
)

func TestTheHubItselfIsChecked(t *testing.T) {
	at := func(o map[string]any, path ...string) map[string]any {
		for _, name := range path {
			o = part(o, name)
		}
		return o
	}
	for answer, tc := range map[string]struct {
		change func(h *hub)
		status int
	}{
		"check-hub-well": {func(*hub) {}, statusWell},
		"check-hub-down": {func(h *hub) { at(h.lists[pathDeployments][0], "status")["readyReplicas"] = 0 }, statusProblem},
		"check-hub-without-leader": {func(h *hub) {
			at(h.lists[pathLeases][0], "spec")["renewTime"] = noon().Add(-time.Hour).Format("2006-01-02T15:04:05.000000Z07:00")
		}, statusProblem},
		"check-hub-policies": {func(h *hub) {
			h.lists[pathPolicies] = h.lists[pathPolicies][1:]
			at(h.lists[pathBindings][2], "spec")["validationActions"] = []any{"Audit"}
		}, statusProblem},
		"check-hub-policies-of-another-version": {func(h *hub) {
			h.lists[pathPolicies] = h.lists[pathPolicies][1:]
			containers, _ := at(h.lists[pathDeployments][0], "spec", "template", "spec")["containers"].([]any)
			containers[0] = map[string]any{"image": "spokelet-hub:v0.9.0@sha256:0123"}
		}, statusWell},
		"check-hub-policies-unread": {func(h *hub) {
			h.forbidden = map[string]bool{"validatingadmissionpolicies": true, "validatingadmissionpolicybindings": true}
		}, statusWell},
		"check-hub-unconverted": {func(h *hub) { h.unconverted = true }, statusProblem},
		"check-hub-authority-ends": {func(h *hub) {
			clientConfig := at(h.lists[pathKinds][0], "spec", "conversion", "webhook", "clientConfig")
			clientConfig["caBundle"] = authority(t, noon().Add(24*time.Hour))
		}, statusWell},
		"check-hub-authority-ended": {func(h *hub) {
			clientConfig := at(h.lists[pathKinds][0], "spec", "conversion", "webhook", "clientConfig")
			clientConfig["caBundle"] = authority(t, noon().Add(-time.Minute))
		}, statusProblem},
		"check-hub-agents": {func(h *hub) {
			for i, life := range []string{
				"2026-11-01 12:00:00 +0000 UTC to 2026-11-30 12:00:00 +0000 UTC",
				"2026-11-28 12:00:00 +0000 UTC to 2026-12-28 12:00:00 +0000 UTC",
			} {
				status := at(h.lists[pathClusters][i], "status")
				conditions, _ := status["conditions"].([]map[string]any)
				status["conditions"] = append(conditions, condition("ClusterCertificateRotated", "True",
					"ClientCertificateUpdated", "client certificate rotated starting from "+life, 1000))
				status["clusterClaims"] = []any{map[string]any{"name": "agent-version.spokelet.io", "value": "v1.0." + string(rune('0'+i))}}
			}
		}, statusWell},
		"check-hub-of-ocm": {func(h *hub) {
			h.lists[pathDeployments] = []map[string]any{
				of("open-cluster-management-hub", "cluster-manager-registration-controller"),
				of("open-cluster-management-hub", "cluster-manager-placement-controller"),
			}
			for _, d := range h.lists[pathDeployments] {
				d["status"] = map[string]any{"readyReplicas": 1}
			}
		}, statusWell},
		"check-hub-of-ocm-down": {func(h *hub) {
			h.lists[pathDeployments] = []map[string]any{of("open-cluster-management-hub", "cluster-manager-placement-controller")}
		}, statusProblem},
		"check-hub-none": {func(h *hub) { h.lists[pathDeployments] = nil }, statusWell},
	} {
		t.Run(answer, func(t *testing.T) {
			h := shop()
			h.lists[pathClusters], h.lists[pathAddOns], h.lists[pathWorks] = h.lists[pathClusters][10:14], nil, nil
			h = governed(t, h)
			tc.change(h)
			got := plays(t, h, "check")
			assert.Equal(t, tc.status, got.status, got.out)
			assert.Empty(t, got.errs)
			golden(t, answer, strings.ReplaceAll(got.out, version.String(), "vX"))
		})
	}
}
