package dashboard

// clusterBoard is about the agents of chosen clusters, of one as a rule.
func clusterBoard() board {
	return board{
		uid: clusterUID, title: "Spokelet / Cluster",
		selects:     `job=~"$agents",cluster=~"$cluster",instance=~"$instance"`,
		description: "The agent of one cluster: its connection, its certificates, its works, and what it uses.",
		variables: []Variable{
			chooseAgentJob(),
			chooseCluster(),
			choose("instance", "Agent", "The agent, where a cluster has several.",
				labelOf{`spokelet_build_info{job=~"$agents",cluster=~"$cluster"}`, "instance"}),
		},
		rows: []row{
			{"Now", clusterNow()}, {"Connection and certificates", clusterConnection()}, {"Works", clusterWorks()},
			{"What went wrong", clusterTrouble()}, {"The agent itself", process()},
		},
	}
}

// chooseCluster returns the variable with the label of clusters. All is any value, and none, because a Prometheus of
// one cluster gives no such label.
func chooseCluster() Variable {
	v := choose("cluster", "Cluster", "The label cluster, which a Prometheus of several clusters adds.",
		labelOf{`spokelet_build_info{job=~"$agents"}`, "cluster"})
	v.AllValue = ".*"
	return v
}

func clusterNow() []panel {
	return []panel{
		{
			kind: stat, unit: count, title: "Hub", width: 3, runbook: alertHubUnreachable,
			steps:   []Step{{Color: act}, from(1, fine)},
			words:   map[string]MappedText{"0": {Text: "away", Color: act}, "1": {Text: "answers", Color: fine, Index: 1}},
			says:    "Whether the hub answers the agent. With several clusters it is the worst of them.",
			do:      "Look at the network and at the API server of the hub. Works stay in force meanwhile.",
			queries: []query{{`min(spokelet_agent_connected{@,to="hub"})`, "hub"}},
		},
		{
			kind: stat, unit: seconds, title: "Outage for", width: 3, steps: lessIsFine(60, 300), runbook: alertHubUnreachable,
			says:    "How long the hub, or the managed cluster of a hosted agent, has not answered.",
			do:      "The runbook has the order in which to look.",
			queries: []query{{`max(time() - spokelet_agent_outage_start_timestamp_seconds{@}) or vector(0)`, "outage"}},
		},
		{
			kind: stat, unit: count, title: "Works", width: 3,
			says:    "Works with objects on the cluster.",
			do:      "A number that falls without a change of an add-on: look at Without their work.",
			queries: []query{{`sum(spokelet_work_works{@,state="live"})`, "works"}},
		},
		{
			kind: stat, unit: count, title: "Objects", width: 3,
			says:    "Objects on the cluster that belong to works.",
			do:      "Nothing: it is the size of what the agent looks after.",
			queries: []query{{`sum(spokelet_work_objects{@})`, "objects"}},
		},
		{
			kind: stat, unit: count, title: "Deletions blocked", width: 3, steps: noneIsFine(act), runbook: alertDeletionBlocked,
			says:    "Objects that are still there some seconds after their deletion.",
			do:      "`kubectl spokelet why work NAME -n CLUSTER` names the finalizer, and whose it is.",
			queries: []query{{`sum(spokelet_work_deletion_blocked{@})`, "blocked"}},
		},
		{
			kind: stat, unit: count, title: "Without their work", width: 3, steps: noneIsFine(look), runbook: alertEviction,
			says:    "Works that the hub does not have any more, and whose objects wait or are held.",
			do:      "A hub that was restored from a backup lacks works: bring them back before you let their objects go.",
			queries: []query{{`sum(spokelet_work_unowned{@})`, "without their work"}},
		},
		{
			kind: stat, unit: count, title: "Certificates late", width: 3, steps: noneIsFine(act),
			runbook: alertAgentCertificate,
			says:    "Certificates that the agent should have replaced: 85 percent of their life is over.",
			do:      "Look for its certificate request on the hub: it waits, or was denied.",
			queries: []query{{`sum(spokelet_certificates_late{@})`, "late"}},
		},
		{
			kind: stat, unit: count, title: "Version", width: 3, named: true,
			says:    "The version of the agent.",
			do:      "One behind the others: see the page about upgrades.",
			queries: []query{{`max by (version) (spokelet_build_info{@})`, "{{version}}"}},
		},
	}
}

func clusterConnection() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Connections", width: 6, drawn: steps, max: 1,
			colors:  map[string]string{"hub": blue, "managed-cluster": orange},
			runbook: alertHubUnreachable,
			says:    "1 while the hub, or the managed cluster of a hosted agent, answers, and 0 while it does not.",
			do:      "A line that goes up and down is a network that loses connections, or a proxy that ends them.",
			queries: []query{{`min by (to) (spokelet_agent_connected{@})`, "{{to}}"}},
		},
		{
			kind: barGauge, unit: seconds, title: "Certificates end in", width: 6, steps: moreIsFine(0, 3600),
			runbook: alertAgentCertificate,
			says:    "How long the certificate of each kind that ends first is still good.",
			do:      "They are renewed when some 80 percent of their life is over, so a bar never becomes short.",
			queries: []query{{`min by (kind) (spokelet_certificate_ends_timestamp_seconds{@}) - time()`, "{{kind}}"}},
		},
		{
			kind: timeSeries, unit: requests, title: "Requests to API servers", width: 6,
			says: "Requests of the agent to the hub and to its cluster, by method. At rest there are heartbeats alone.",
			do:   "Requests that go on at rest: look at the row What went wrong.",
			queries: []query{{
				`sum by (method) (rate(rest_client_requests_total{@}[$__rate_interval]))`, "{{method}}",
			}},
		},
		{
			kind: timeSeries, unit: requests, title: "Requests that were refused", width: 6,
			says: "Answers of API servers with an error, by their code. 404 and 409 are part of normal work.",
			do:   "403 is a right that is missing, 429 an API server that has too much to do, 5xx one that is ill.",
			queries: []query{{
				`sum by (code) (rate(rest_client_requests_total{@,code!~"[123].."}[$__rate_interval]))`, "{{code}}",
			}},
		},
	}
}

func clusterWorks() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Works by state", width: 6, drawn: stacked,
			colors:  byValue("live", "leaving"),
			says:    "Works with objects on the cluster, and those that are being removed.",
			do:      "Works that stay leaving wait for an object that is not gone: see Deletions.",
			queries: []query{{`sum by (state) (spokelet_work_works{@})`, "{{state}}"}},
		},
		{
			kind: timeSeries, unit: perSecond, title: "Manifests applied", width: 6,
			colors:  byValue("applied", "failed"),
			says:    "Manifests that were compared with the cluster by a request, and those that could not be applied.",
			do:      "`kubectl spokelet get works -n CLUSTER --not-ready` has those that are not applied, and why.",
			queries: []query{{`sum by (result) (rate(spokelet_work_applies_total{@}[$__rate_interval]))`, "{{result}}"}},
		},
		{
			kind: timeSeries, unit: seconds, title: "From the hub to applied", width: 6,
			colors: map[string]string{"half of them": blue, "99 of 100": orange},
			says:   "How long a change of a work takes from its write on the hub until it is applied.",
			do:     "When it grows and passes do not, look at the connection to the hub.",
			queries: []query{
				{quantile("0.5", "spokelet_work_write_to_applied_seconds", "@", ""), "half of them"},
				{quantile("0.99", "spokelet_work_write_to_applied_seconds", "@", ""), "99 of 100"},
			},
		},
		{
			kind: timeSeries, unit: seconds, title: "Time of a pass over a work", width: 6,
			says:    "How long 99 of 100 passes take, by what they are about.",
			do:      "When it grows, look at the API server of the cluster, and at the number of objects of a work.",
			queries: []query{{quantile("0.99", "spokelet_work_pass_seconds", "@", "phase"), "{{phase}}"}},
		},
	}
}

func clusterTrouble() []panel {
	return []panel{
		{
			kind: timeSeries, unit: perSecond, title: "Repairs", width: 6, runbook: alertDrift,
			says: "Objects that were repaired after another client changed or deleted them, by what was done.",
			do:   "Repairs that go on: two programs write one object. Let the other one have the field (ignoreFields).",
			queries: []query{{
				`sum by (action) (rate(spokelet_work_repairs_total{@}[$__rate_interval]))`, "{{action}}",
			}},
		},
		{
			kind: timeSeries, unit: perSecond, title: "Deletions", width: 6, runbook: alertDeletionBlocked,
			colors:  byValue("gone", "held", "failed"),
			says:    "Requests to delete an object: it was gone at once, is held by a finalizer, or the request failed.",
			do:      "Held is normal for some seconds. Deletions blocked counts those that stay.",
			queries: []query{{`sum by (result) (rate(spokelet_work_deletions_total{@}[$__rate_interval]))`, "{{result}}"}},
		},
		{
			kind: timeSeries, unit: count, title: "Without their work, by state", width: 6, drawn: stacked,
			colors:  byValue("waiting", "held", "older"),
			runbook: alertEviction,
			says:    "Works that the hub does not have any more: their objects wait for an end of their grace, or are held.",
			do:      "Held ones are kept until a person decides: the runbook says how.",
			queries: []query{{`sum by (state) (spokelet_work_unowned{@})`, "{{state}}"}},
		},
		{
			kind: timeSeries, unit: count, title: "Watches", width: 6, colors: byValue("wanted", "refused", "beyond"),
			says: "Watches of applied objects, those that the API server refuses, and those that are beyond the bound.",
			do:   "Refused watches lack a right: drift of those objects is found late. The log names them.",
			queries: []query{
				{`sum by (state) (spokelet_work_watches{@})`, "{{state}}"},
			},
		},
	}
}
