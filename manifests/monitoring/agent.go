package monitoring

import "time"

// agent names the pod of an agent, and its cluster where a label tells it.
const agent = "Agent {{ $labels.namespace }}/{{ $labels.pod }}" +
	"{{ with or $labels.cluster $externalLabels.cluster }} of cluster {{ . }}{{ end }}"

// agentAlerts returns the alerts about what agents count.
func agentAlerts() []Alert {
	return []Alert{
		{
			Name: "SpokeletHubUnreachable", Program: Agent, Severity: Warning, For: 10 * time.Minute,
			Expr:    `spokelet_agent_connected{to="hub"} == 0`,
			Summary: agent + " does not reach the hub.",
			Description: "The hub does not answer the agent. What was applied stays in force and is repaired; no change " +
				"of the hub arrives. On the cluster, run: kubectl spokelet logs agent --errors. On the hub, run: kubectl " +
				"spokelet why cluster NAME",
		},
		{
			Name: "SpokeletAgentCertificateLate", Program: Agent, Severity: Critical, For: 15 * time.Minute,
			Expr:      `spokelet_certificates_late{kind!="webhook"} > THRESHOLD`,
			Threshold: 0, Unit: "certificates of a kind",
			Summary: agent + " does not get {{ $value }} certificates (kind {{ $labels.kind }}) renewed.",
			Description: "85 percent of the life of {{ $value }} certificates of kind {{ $labels.kind }} is over, and " +
				"they were not replaced. When they end, the hub knows the agent or the add-on no more. On the hub, run: " +
				"kubectl spokelet why cluster NAME; kubectl get csr",
		},
		{
			Name: "SpokeletDeletionBlocked", Program: Agent, Severity: Warning, For: 15 * time.Minute,
			Expr:      `spokelet_work_deletion_blocked > THRESHOLD`,
			Threshold: 0, Unit: "objects",
			Summary: agent + " waits for the deletion of {{ $value }} objects.",
			Description: "{{ $value }} objects of works were deleted and are still there, so that their works, and the " +
				"removal of add-ons or of the cluster, wait. On the hub, run: kubectl spokelet get works -A --not-ready; " +
				"kubectl spokelet why work NAME -n CLUSTER",
		},
		{
			Name: "SpokeletDriftRepeated", Program: Agent, Severity: Warning, For: 15 * time.Minute,
			Expr:      `sum without (action) (increase(spokelet_work_repairs_total[1h])) > THRESHOLD`,
			Threshold: 20, Unit: "repairs within an hour",
			Summary: agent + ` repaired objects {{ printf "%.0f" $value }} times within an hour.`,
			Description: "Another client changes or deletes objects of works again and again, and the agent repairs them " +
				"each time. On the hub, run: kubectl spokelet events -A, and look for DriftRepaired, which names the " +
				"objects. On the cluster, run: kubectl get KIND NAME -n NAMESPACE -o yaml --show-managed-fields, which " +
				"names who writes",
		},
		{
			Name: "SpokeletEvictionHeld", Program: Agent, Severity: Warning, For: 5 * time.Minute,
			Expr:      `sum without (state) (spokelet_work_unowned{state=~"held|older"}) > THRESHOLD`,
			Threshold: 0, Unit: "works",
			Summary: agent + " keeps the objects of {{ $value }} works that the hub lost.",
			Description: "{{ $value }} works are gone from the hub at once, or are older than what was applied. Their " +
				"objects stay until the works are back or a person confirms that they go. On the hub, run: kubectl spokelet " +
				"why cluster NAME",
		},
	}
}
