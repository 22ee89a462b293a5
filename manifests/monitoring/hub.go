package monitoring

import (
	"slices"
	"time"
)

// lead ends the sums over the pods of the hub manager, of which one leads: another pod that takes the lead goes on with
// the alert.
const lead = "sum without (instance, pod) "

// hubAlerts returns the alerts about what the hub manager counts.
func hubAlerts() []Alert { return slices.Concat(managerAlerts(), fleetAlerts()) }

// managerAlerts returns the alerts about the hub manager itself, and about certificates.
func managerAlerts() []Alert {
	return []Alert{
		{
			Name: "SpokeletHubManagerNotLeading", Program: Hub, Severity: Critical, For: 5 * time.Minute,
			Expr: `(
  count without (instance, pod, version) (spokelet_build_info{component="hub-manager"})
  unless on (job, namespace) count without (instance, pod) (spokelet_fleet_heartbeat_age_seconds_count)
)
or absent(spokelet_build_info{component="hub-manager"})`,
			Summary: "No hub manager leads.",
			Description: "Hub managers run and none of them leads, or none is scraped. No cluster is accepted, no add-on " +
				"is installed, changed or removed, and the other alerts about the fleet are silent. What runs on clusters " +
				"goes on. Run: kubectl spokelet check; kubectl spokelet logs hub --errors",
		},
		{
			Name: "SpokeletWebhookFailing", Program: Hub, Severity: Critical, For: 5 * time.Minute,
			Expr: `100 * sum without (instance, pod, code) (
  increase(controller_runtime_webhook_requests_total{code!="200"}[10m])
  and on (job, namespace, instance) spokelet_build_info{component="hub-manager"}
) / sum without (instance, pod, code) (
  increase(controller_runtime_webhook_requests_total[10m])
  and on (job, namespace, instance) spokelet_build_info{component="hub-manager"}
) > THRESHOLD`,
			Threshold: 5, Unit: "percent of the requests of ten minutes",
			Summary: `The webhook of the hub manager refuses {{ printf "%.0f" $value }} percent of its requests.`,
			Description: `The hub manager answers {{ printf "%.0f" $value }} percent of the requests to {{ ` +
				"$labels.webhook }} with an error. While add-ons are not converted, reading them in one of their versions " +
				"fails, also for the hub manager. Run: kubectl spokelet check; kubectl spokelet logs hub --errors",
		},
		{
			Name: "SpokeletCertificateLate", Program: Hub, Severity: Critical, For: 15 * time.Minute,
			Expr: lead + `(
  spokelet_fleet_certificates_late or spokelet_certificates_late{kind="webhook"}
) > THRESHOLD`,
			Threshold: 0, Unit: "certificates of a kind",
			Summary: "{{ $value }} certificates (kind {{ $labels.kind }}) are not renewed.",
			Description: "85 percent of the life of {{ $value }} certificates of kind {{ $labels.kind }} is over, and " +
				"they were not replaced. A cluster whose certificate ends is lost to the hub; without that of the webhook, " +
				"add-ons cannot be read in one of their versions. Run: kubectl spokelet check; kubectl spokelet get " +
				"clusters -o wide",
		},
	}
}

// fleetAlerts returns the alerts about clusters and add-ons.
func fleetAlerts() []Alert {
	return []Alert{
		{
			Name: "SpokeletClusterSilent", Program: Hub, Severity: Warning, For: 10 * time.Minute,
			Expr:      lead + `(spokelet_fleet_clusters{code="SPK031"}) > THRESHOLD`,
			Threshold: 0, Unit: "clusters",
			Summary: "The heartbeat of {{ $value }} clusters stopped.",
			Description: "The hub hears nothing of {{ $value }} clusters. What was applied there stays in force, and no " +
				"change reaches them. Run: kubectl spokelet get clusters --not-ready; kubectl spokelet why cluster NAME",
		},
		{
			Name: "SpokeletAddOnUnavailable", Program: Hub, Severity: Warning, For: 15 * time.Minute,
			Expr: `100 * sum without (instance, pod, code) (spokelet_fleet_addons{code!~"well|SPK031|SPK057"})
  / sum without (instance, pod, code) (spokelet_fleet_addons) > THRESHOLD`,
			Threshold: 10, Unit: "percent of the clusters of an add-on",
			Summary: `Add-on {{ $labels.addon }} does not work on {{ printf "%.0f" $value }} percent of its clusters.`,
			Description: `Add-on {{ $labels.addon }} does not work on {{ printf "%.0f" $value }} percent of its ` +
				"clusters, not counting clusters that are silent and those that it is being removed from. Run: kubectl " +
				"spokelet tree addon {{ $labels.addon }}; kubectl spokelet why addon {{ $labels.addon }} -n CLUSTER",
		},
		{
			Name: "SpokeletRenderFailing", Program: Hub, Severity: Warning, For: 5 * time.Minute,
			Expr: lead + `(
  increase(spokelet_template_renders_total{result="failed"}[15m])
) > THRESHOLD`,
			Threshold: 0, Unit: "attempts within 15 minutes",
			Summary: "Templates of add-ons cannot be rendered.",
			Description: "The hub manager could not render the template of an add-on for a cluster, {{ printf \"%.0f\" " +
				"$value }} times within 15 minutes. The cluster keeps what it has. Run: kubectl spokelet check, and look " +
				"for SPK049",
		},
		{
			Name: "SpokeletRolloutStopped", Program: Hub, Severity: Warning, For: 5 * time.Minute,
			Expr:      lead + `(spokelet_fleet_rollouts_stopped) > THRESHOLD`,
			Threshold: 0, Unit: "placements of an add-on",
			Summary: "The rollout of add-on {{ $labels.addon }} stopped.",
			Description: "More clusters failed than the rollout of add-on {{ $labels.addon }} tolerates, in {{ $value }} " +
				"of its placements. The other clusters keep their configuration. Run: kubectl spokelet rollout status " +
				"addon {{ $labels.addon }}",
		},
		{
			Name: "SpokeletRemovalHeld", Program: Hub, Severity: Warning, For: 5 * time.Minute,
			Expr:      lead + `(spokelet_fleet_removals_held) > THRESHOLD`,
			Threshold: 0, Unit: "clusters of an add-on",
			Summary: "The removal of add-on {{ $labels.addon }} from {{ $value }} clusters is held.",
			Description: "Placements stopped selecting {{ $value }} clusters of add-on {{ $labels.addon }} at once, and " +
				"no edit explains it. The add-on stays there until a person confirms its removal, or the clusters are " +
				"selected again. Run: kubectl get clustermanagementaddon {{ $labels.addon }} -o yaml, and read annotation " +
				"addon.spokelet.io/removal-held",
		},
	}
}
