package dashboard

// fleetBoard is about all clusters and add-ons of a hub.
func fleetBoard() board {
	return board{
		uid: fleetUID, title: "Spokelet / Fleet", selects: `job=~"$job"`,
		description: "What is wrong in a fleet, how much of it, and since when: clusters, add-ons, agents.",
		variables:   []Variable{chooseHubJob(), chooseAgentJob()},
		rows: []row{
			{"Now", fleetNow()}, {"Clusters", fleetClusters()}, {"Add-ons", fleetAddOns()}, {"Agents", fleetAgents()},
		},
	}
}

func chooseHubJob() Variable {
	return choose("job", "Hub manager", "The job that scrapes the hub manager.",
		labelOf{`spokelet_build_info{component="hub-manager"}`, "job"})
}

func chooseAgentJob() Variable {
	return choose("agents", "Agents", "The jobs that scrape agents, if this Prometheus does.",
		labelOf{`spokelet_build_info{component="agent"}`, "job"})
}

func fleetNow() []panel {
	return []panel{
		{
			kind: stat, unit: count, title: "Clusters", width: 3,
			says:    "Clusters that the hub knows.",
			do:      "A sudden drop means that clusters were deleted: look at the audit log of the hub.",
			queries: []query{{`sum(spokelet_fleet_clusters{@}) or vector(0)`, "clusters"}},
		},
		{
			kind: stat, unit: count, title: "Clusters in trouble", width: 3, steps: noneIsFine(act), runbook: alertClusterSilent,
			says:    "Clusters with any problem, silent ones among them.",
			do:      "`kubectl spokelet check` names them, with what to do. The row Clusters says which problem it is.",
			queries: []query{{`sum(spokelet_fleet_clusters{@,code!="well"}) or vector(0)`, "in trouble"}},
		},
		{
			kind: stat, unit: share, title: "Add-ons that are well", width: 4, steps: moreIsFine(0.9, 0.99),
			runbook: alertAddOns,
			says:    "The share of add-ons on clusters that have no problem.",
			do:      "Look at the row Add-ons for the one that is not well, and open its dashboard by its name.",
			queries: []query{{shareOf(`spokelet_fleet_addons{@,code="well"}`, `spokelet_fleet_addons{@}`), "well"}},
		},
		{
			kind: stat, unit: count, title: "Rollouts stopped", width: 3, steps: noneIsFine(act), runbook: alertRolloutStopped,
			says:    "Placements whose rollout does not go on, because more clusters failed than it tolerates.",
			do:      "Repair the clusters that failed, or set the former configuration: the rollout goes on by itself.",
			queries: []query{{`sum(spokelet_fleet_rollouts_stopped{@}) or vector(0)`, "stopped"}},
		},
		{
			kind: stat, unit: count, title: "Removals held", width: 3, steps: noneIsFine(look), runbook: alertHeld,
			says: "Clusters from which an add-on is not removed until a person confirms it.",
			do: "Find out why so many clusters lost the add-on at once. Confirm the removal, or repair the placement: then " +
				"nothing is removed.",
			queries: []query{{`sum(spokelet_fleet_removals_held{@}) or vector(0)`, "held"}},
		},
		{
			kind: stat, unit: count, title: "Certificates late", width: 4, steps: noneIsFine(act), runbook: alertCertificate,
			says:    "Certificates of agents and add-ons that should have been replaced: 85 percent of their life is over.",
			do:      "`kubectl spokelet check` names the cluster. A cluster is lost for the hub when its certificate ends.",
			queries: []query{{`sum(spokelet_fleet_certificates_late{@}) or vector(0)`, "late"}},
		},
		{
			kind: stat, unit: seconds, title: "First certificate ends in", width: 4, steps: moreIsFine(0, 3600),
			runbook: alertCertificate,
			says:    "How long it is until the first certificate of an agent or an add-on ends.",
			do:      "It grows when an agent renews its certificate. Certificates late counts those that do not in time.",
			queries: []query{{`min(spokelet_fleet_certificate_ends_timestamp_seconds{@}) - time()`, "first"}},
		},
	}
}

func fleetClusters() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Clusters by what is wrong with them", width: 12, drawn: stacked,
			codes: ofClusters(), runbook: alertClusterSilent,
			says: "Each cluster counts once, with what is wrong with it first.",
			do:   "Choose a code in the legend: its link says what to do. `kubectl spokelet tree` names the clusters.",
			queries: []query{{
				`sum by (code) (spokelet_fleet_clusters{@})`, "{{code}}",
			}},
		},
		{
			kind: barGauge, unit: count, title: "Clusters by what is wrong with them, now", width: 6, codes: ofClusters(),
			says:    "The last values of the panel beside it.",
			do:      "Begin with the longest bar: many clusters with one code have one cause, such as a network.",
			queries: []query{{`sort_desc(sum by (code) (spokelet_fleet_clusters{@}))`, "{{code}}"}},
		},
		{
			kind: timeSeries, unit: seconds, title: "Age of heartbeats", width: 6, runbook: alertClusterSilent,
			colors: map[string]string{"half of them": blue, "99 of 100": orange},
			steps:  []Step{{Color: fine}, from(300, act)},
			says:   "How old the heartbeats of accepted clusters are. Healthy agents renew theirs within 75 seconds.",
			do: "When all grow old at once, look at the API server of the hub and at the network before it. When a few do, " +
				"look at those clusters.",
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (spokelet_fleet_heartbeat_age_seconds_bucket{@}))`, "half of them"},
				{`histogram_quantile(0.99, sum by (le) (spokelet_fleet_heartbeat_age_seconds_bucket{@}))`, "99 of 100"},
			},
		},
	}
}

func fleetAddOns() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Add-ons on clusters by what is wrong with them", width: 12, drawn: stacked,
			codes: ofAddOns(), runbook: alertAddOns,
			says: "Each add-on of each cluster counts once, with what is wrong with it first.",
			do:   "Choose a code in the legend: its link says what to do. `kubectl spokelet tree` names the clusters.",
			queries: []query{{
				`sum by (code) (spokelet_fleet_addons{@})`, "{{code}}",
			}},
		},
		{
			kind: table, unit: count, title: "Add-ons", width: 12, by: "addon", opens: addOnUID,
			runbook: alertRolloutStopped,
			says:    "Each add-on with the clusters that have it, those where it is in trouble, and how far its rollout is.",
			do:      "Choose the name of an add-on to open its dashboard.",
			columns: []column{
				{"clusters", `sum by (addon) (spokelet_fleet_addons{@})`, count, nil},
				{"in trouble", orZero(`spokelet_fleet_addons{@,code!="well"}`, `spokelet_fleet_addons{@}`), count, noneIsFine(act)},
				{"moving", stageOf("moving"), count, nil},
				{"waiting", stageOf("waiting"), count, nil},
				{"failed", stageOf("failed"), count, noneIsFine(act)},
				{"stopped", `sum by (addon) (spokelet_fleet_rollouts_stopped{@})`, count, noneIsFine(act)},
			},
		},
	}
}

// stageOf counts the clusters of each add-on at a stage; zero where there are none.
func stageOf(stage string) string {
	return orZero(`spokelet_fleet_rollouts{@,state="`+stage+`"}`, `spokelet_fleet_rollouts{@}`)
}

// shareOf is the share of some in all; zero of nothing is zero.
func shareOf(some, all string) string {
	return `(sum(` + some + `) or vector(0)) / (sum(` + all + `) > 0 or vector(1))`
}

// orZero sums by add-on, with zero for an add-on that only the second selector has.
func orZero(of, known string) string {
	return `sum by (addon) (` + of + `) or 0 * sum by (addon) (` + known + `)`
}

func fleetAgents() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Programs by version", width: 9, drawn: stacked,
			says: "Hub managers and agents that are scraped, by the version that they run.",
			do:   "During an upgrade, one colour replaces another. The legend has the versions that stay behind.",
			queries: []query{
				{`count by (component, version) (spokelet_build_info{@})`, "{{component}} {{version}}"},
				{`count by (component, version) (spokelet_build_info{job=~"$agents"})`, "{{component}} {{version}}"},
			},
		},
		{
			kind: stat, unit: count, title: "Agents without the hub", width: 3, height: 8, steps: noneIsFine(act),
			runbook: alertHubUnreachable,
			says:    "Agents that are scraped and have no answer of the hub.",
			do:      "Look at the network between them and the hub. What they applied stays, and is repaired meanwhile.",
			queries: []query{{`count(spokelet_agent_connected{job=~"$agents",to="hub"} == 0) or vector(0)`, "without the hub"}},
		},
		{
			kind: table, unit: count, title: "Agents", width: 12, by: "instance", opens: clusterUID,
			runbook: alertHubUnreachable,
			says:    "Agents that are scraped: whether the hub answers them, and what they have and could not do.",
			do:      "Choose the name of an agent to open the dashboard of its cluster.",
			columns: []column{
				{"hub answers", `sort(min by (instance) (spokelet_agent_connected{job=~"$agents",to="hub"}))`, count,
					[]Step{{Color: act}, from(1, fine)}},
				{"works", `sum by (instance) (spokelet_work_works{job=~"$agents"})`, count, nil},
				{"deletions blocked", `sum by (instance) (spokelet_work_deletion_blocked{job=~"$agents"})`, count, noneIsFine(act)},
				{"certificates late", `sum by (instance) (spokelet_certificates_late{job=~"$agents"})`, count, noneIsFine(act)},
			},
		},
		{
			kind: timeSeries, unit: perSecond, title: "What agents could not do", width: 24, height: 6,
			runbook: alertDeletionBlocked,
			colors:  map[string]string{"objects not applied": vermillion, "deletions refused": orange, "objects repaired": sky},
			says:    "How often agents that are scraped could not apply or delete an object, and how often they repaired one.",
			do:      "Open the dashboard of the cluster. Repairs that go on mean that two programs write one object.",
			queries: []query{
				{`sum(rate(spokelet_work_applies_total{job=~"$agents",result="failed"}[$__rate_interval])) or vector(0)`,
					"objects not applied"},
				{`sum(rate(spokelet_work_deletions_total{job=~"$agents",result="failed"}[$__rate_interval])) or vector(0)`,
					"deletions refused"},
				{`sum(rate(spokelet_work_repairs_total{job=~"$agents"}[$__rate_interval])) or vector(0)`, "objects repaired"},
			},
		},
	}
}
