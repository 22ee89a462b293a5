package dashboard

import "strings"

// addOnBoard is about chosen add-ons on all their clusters.
func addOnBoard() board {
	return board{
		uid: addOnUID, title: "Spokelet / Add-on and rollout", selects: `job=~"$job",addon=~"$addon"`,
		description: "How far the rollout of an add-on is, on how many clusters it is well, and how fast changes arrive.",
		variables: []Variable{
			chooseHubJob(), chooseAgentJob(),
			choose("addon", "Add-on", "The add-on.", labelOf{`spokelet_fleet_rollouts_stopped{job=~"$job"}`, "addon"}),
		},
		rows: []row{
			{"Now", addOnNow()}, {"Rollout", addOnRollout()}, {"Health", addOnHealth()}, {"Delivery", addOnDelivery()},
		},
	}
}

func addOnNow() []panel {
	return []panel{
		{
			kind: stat, unit: count, title: "Clusters", width: 3,
			says:    "Clusters that have the add-on.",
			do:      "A number that falls: see Removals held, and the Placement of the add-on.",
			queries: []query{{`sum(spokelet_fleet_addons{@}) or vector(0)`, "clusters"}},
		},
		{
			kind: stat, unit: share, title: "Well", width: 3, steps: moreIsFine(0.9, 0.99), runbook: alertAddOns,
			says:    "The share of them where it has no problem.",
			do:      "The row Health says what is wrong elsewhere. `kubectl spokelet tree addon NAME` names them.",
			queries: []query{{shareOf(`spokelet_fleet_addons{@,code="well"}`, `spokelet_fleet_addons{@}`), "well"}},
		},
		{
			kind: stat, unit: share, title: "Rollout complete", width: 3,
			says: "The share of clusters that have the configuration that they should have.",
			do:   "When it stands still, look at Failed and Stopped. A rollout waits for clusters that move.",
			queries: []query{{
				shareOf(`spokelet_fleet_rollouts{@,state="complete"}`, `spokelet_fleet_rollouts{@}`), "complete",
			}},
		},
		stageNow("Moving", nil, panel{
			says: "Clusters that are getting their configuration at this moment.",
			do:   "Clusters that move for long have a problem that the row Health shows.",
		}),
		stageNow("Waiting", nil, panel{
			says: "Clusters that keep their former configuration until it is their turn.",
			do:   "Nothing, while the rollout goes on.",
		}),
		stageNow("Failed", noneIsFine(act), panel{
			says: "Clusters that the rollout counts as failed.",
			do:   "`kubectl spokelet rollout status addon NAME` names them. The rollout goes on when they are well again.",
		}),
		{
			kind: stat, unit: count, title: "Stopped", width: 3, steps: noneIsFine(act), runbook: alertRolloutStopped,
			says: "Placements whose rollout does not go on, because more clusters failed than it tolerates.",
			do:   "Repair the clusters that failed, or set the former configuration.",
			queries: []query{{
				`sum(spokelet_fleet_rollouts_stopped{@}) or vector(0)`, "stopped",
			}},
		},
		{
			kind: stat, unit: count, title: "Removals held", width: 3, steps: noneIsFine(look), runbook: alertHeld,
			says:    "Clusters from which it is not removed until a person confirms it.",
			do:      "Find out why so many clusters lost it at once. Confirm the removal, or repair the placement.",
			queries: []query{{`sum(spokelet_fleet_removals_held{@}) or vector(0)`, "held"}},
		},
	}
}

// stageNow adds the number of clusters at a stage of the rollout to a panel.
func stageNow(title string, colors []Step, p panel) panel {
	stage := strings.ToLower(title)
	p.kind, p.unit, p.title, p.width, p.steps, p.runbook = stat, count, title, 3, colors, alertRolloutStopped
	p.queries = []query{{`sum(spokelet_fleet_rollouts{@,state="` + stage + `"}) or vector(0)`, stage}}
	return p
}

func addOnRollout() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Clusters by how far they are", width: 14, height: 9, drawn: stacked,
			colors: byValue("complete", "moving", "waiting", "failed"), runbook: alertRolloutStopped,
			says: "The rollout as it moves: clusters wait, move, and are complete, or failed.",
			do:   "A flat picture with clusters that wait is a rollout that stopped, or that waits for clusters that move.",
			queries: []query{{
				`sum by (state) (spokelet_fleet_rollouts{@})`, "{{state}}",
			}},
		},
		{
			kind: barGauge, unit: share, title: "Complete, by add-on", width: 10, height: 9, max: 1,
			says: "The share of clusters of each add-on that have the configuration that they should have.",
			do:   "Choose the add-on above that is behind.",
			queries: []query{{
				`sort_desc((sum by (addon) (spokelet_fleet_rollouts{@,state="complete"}) or 0 * sum by (addon) (` +
					`spokelet_fleet_rollouts{@})) / sum by (addon) (spokelet_fleet_rollouts{@}))`, "{{addon}}",
			}},
		},
	}
}

func addOnHealth() []panel {
	return []panel{
		{
			kind: timeSeries, unit: count, title: "Clusters by what is wrong with the add-on", width: 14, height: 9,
			drawn: stacked, codes: ofAddOns(), runbook: alertAddOns,
			says: "Each cluster counts once for an add-on, with what is wrong with it first.",
			do:   "Choose a code in the legend: its link says what to do.",
			queries: []query{{
				`sum by (code) (spokelet_fleet_addons{@})`, "{{code}}",
			}},
		},
		{
			kind: table, unit: count, title: "What is wrong, now", width: 10, height: 9, by: "code", codes: ofAddOns(),
			says: "The last values of the panel beside it, with the names of the add-ons.",
			do:   "`kubectl spokelet why addon NAME -n CLUSTER` leads from one cluster to the cause.",
			columns: []column{{
				"clusters", `sort_desc(sum by (addon, code) (spokelet_fleet_addons{@}))`, count, nil,
			}},
		},
	}
}

func addOnDelivery() []panel {
	return []panel{
		{
			kind: timeSeries, unit: seconds, title: "From the hub to applied", width: 8,
			colors: map[string]string{"half of them": blue, "99 of 100": orange},
			says:   "How long a change takes from its write on the hub until it is applied, by agents that are scraped.",
			do:     "When it grows, look at the connections of agents to the hub, and at the passes of one cluster.",
			queries: []query{
				{quantile("0.5", "spokelet_work_write_to_applied_seconds", `job=~"$agents"`, ""), "half of them"},
				{quantile("0.99", "spokelet_work_write_to_applied_seconds", `job=~"$agents"`, ""), "99 of 100"},
			},
		},
		{
			kind: timeSeries, unit: perSecond, title: "Templates rendered", width: 8, runbook: alertRender,
			colors: byValue("rendered", "failed"),
			says:   "How often templates of add-ons were rendered, and how often that failed. It counts all add-ons.",
			do:     "Condition ManifestApplied of the add-on has the error, such as a variable without a value.",
			queries: []query{{
				`sum by (result) (rate(spokelet_template_renders_total{job=~"$job"}[$__rate_interval]))`, "{{result}}",
			}},
		},
		{
			kind: timeSeries, unit: seconds, title: "Time of a pass over an add-on", width: 8,
			colors: map[string]string{"hub.deploy": blue, "hub.rollout": orange, "hub.install": green, "hub.placement": purple},
			says:   "How long 99 of 100 passes take that install, place, plan and deploy add-ons.",
			do:     "When it grows, look at the API server of the hub: these passes wait for it most of the time.",
			queries: []query{{quantile("0.99", "controller_runtime_reconcile_time_seconds",
				`job=~"$job",controller=~"hub.deploy|hub.rollout|hub.install|hub.placement"`, "controller"), "{{controller}}"}},
		},
	}
}

// quantile is a quantile of what a histogram of durations counted a moment ago, by a label or of all.
func quantile(q, histogram, selector, by string) string {
	if by != "" {
		by = ", " + by
	}
	return `histogram_quantile(` + q + `, sum by (le` + by + `) (rate(` + histogram + `_bucket{` + selector +
		`}[$__rate_interval])))`
}
