package dashboard

// hubManagerBoard is about the hub manager itself.
func hubManagerBoard() board {
	return board{
		uid: hubManagerUID, title: "Spokelet / Hub manager", selects: `job=~"$job",instance=~"$instance"`,
		description: "The hub manager itself: who leads, whether it keeps up, what it is refused, and what it uses.",
		variables: []Variable{
			chooseHubJob(),
			choose("instance", "Replica", "The replica.", labelOf{`spokelet_build_info{job=~"$job"}`, "instance"}),
		},
		rows: []row{
			{"Now", hubNow()}, {"Reconcilers", hubReconcilers()}, {"Requests and certificates", hubRequests()},
			{"Webhook and templates", hubWebhook()}, {"The program itself", process()},
		},
	}
}

func hubNow() []panel {
	return []panel{
		{
			kind: stat, unit: count, title: "Leaders", width: 3, steps: []Step{{Color: act}, from(1, fine), from(2, act)},
			runbook: alertNoLeader,
			says:    "Replicas that lead. Exactly one should.",
			do:      "Without one nothing moves on the hub: look at the pods, and at the Lease in their namespace.",
			queries: []query{{`sum(leader_election_master_status{@}) or vector(0)`, "leaders"}},
		},
		{
			kind: stat, unit: count, title: "Replicas", width: 3,
			says:    "Replicas that are scraped.",
			do:      "Fewer than the Deployment has: `kubectl get pods` in its namespace says why.",
			queries: []query{{`count(spokelet_build_info{@}) or vector(0)`, "replicas"}},
		},
		{
			kind: stat, unit: perSecond, title: "Passes that failed", width: 3, steps: lessIsFine(0.1, 1),
			says: "Passes of reconcilers that ended with an error. They are repeated.",
			do:   "Errors by reconciler says whose, and its log what.",
			queries: []query{{
				`sum(rate(controller_runtime_reconcile_errors_total{@}[$__rate_interval])) or vector(0)`, "failed",
			}},
		},
		{
			kind: stat, unit: requests, title: "Webhook calls that failed", width: 3, runbook: alertWebhook,
			steps: []Step{{Color: fine}, from(0.001, act)},
			says:  "Calls of the API server to the webhook that were answered with an error.",
			do:    "Other programs cannot read or write add-ons while conversions fail: read the log of the hub manager.",
			queries: []query{{
				`sum(rate(controller_runtime_webhook_requests_total{@,code!="200"}[$__rate_interval])) or vector(0)`, "failed",
			}},
		},
		{
			kind: stat, unit: seconds, title: "Certificate of the webhook ends in", width: 4, steps: moreIsFine(0, 3600),
			runbook: alertWebhook,
			says:    "How long the certificate of the webhook is still good. A replica without a webhook has none.",
			do:      "The hub manager replaces it by itself. When it does not, its log says why.",
			queries: []query{{`min(spokelet_certificate_ends_timestamp_seconds{@,kind="webhook"}) - time()`, "webhook"}},
		},
		{
			kind: stat, unit: count, title: "Unreadable objects", width: 3, steps: noneIsFine(look),
			says:    "Objects that exist and cannot be decoded. They are left as they are.",
			do:      "The log names each: repair it, or delete it.",
			queries: []query{{`sum(spokelet_undecodable_objects{@}) or vector(0)`, "objects"}},
		},
		{
			kind: stat, unit: count, title: "Unknown settings", width: 3, steps: noneIsFine(look),
			says:    "Flags and feature gates that were given and that it does not know.",
			do:      "`/readyz?verbose` and the log name them: look for a name that is written wrong.",
			queries: []query{{`max(spokelet_foreign_settings{@,state="unknown"})`, "unknown"}},
		},
		{
			kind: stat, unit: count, title: "Version", width: 2, named: true,
			says:    "The version of the hub manager.",
			do:      "Two at once are an upgrade that goes on.",
			queries: []query{{`max by (version) (spokelet_build_info{@})`, "{{version}}"}},
		},
	}
}

func hubReconcilers() []panel {
	return []panel{
		{
			kind: timeSeries, unit: perSecond, title: "Passes by reconciler", width: 8,
			says: "How often each reconciler looks at an object.",
			do:   "At rest there are almost none. One that never rests is woken by objects that change all the time.",
			queries: []query{{
				`sum by (controller) (rate(controller_runtime_reconcile_total{@}[$__rate_interval]))`, "{{controller}}",
			}},
		},
		{
			kind: timeSeries, unit: perSecond, title: "Errors by reconciler", width: 8,
			says: "Passes that ended with an error, which are repeated later and later.",
			do:   "The log of that name has the error.",
			queries: []query{{
				`sum by (controller) (rate(controller_runtime_reconcile_errors_total{@}[$__rate_interval]))`, "{{controller}}",
			}},
		},
		{
			kind: timeSeries, unit: seconds, title: "Time of a pass by reconciler", width: 8,
			says: "How long 99 of 100 passes take.",
			do:   "When all grow at once, the API server of the hub is slow.",
			queries: []query{{quantile("0.99", "controller_runtime_reconcile_time_seconds", "@", "controller"),
				"{{controller}}"}},
		},
		{
			kind: timeSeries, unit: count, title: "Objects in queues", width: 8,
			says:    "Objects that wait for their pass.",
			do:      "Queues that do not become empty: the hub manager does not keep up. See the page about large fleets.",
			queries: []query{{`sum by (name) (workqueue_depth{@})`, "{{name}}"}},
		},
		{
			kind: timeSeries, unit: seconds, title: "Time in queues", width: 8,
			says:    "How long 99 of 100 objects wait for their pass.",
			do:      "Give the reconciler more workers, see the page about flags, if the API server has room.",
			queries: []query{{quantile("0.99", "workqueue_queue_duration_seconds", "@", "name"), "{{name}}"}},
		},
		{
			kind: timeSeries, unit: share, title: "Workers that are busy", width: 8, max: 1,
			says: "The share of the workers of each reconciler that are busy.",
			do:   "One that is at 100 percent for long is where objects wait.",
			queries: []query{{
				`sum by (controller) (controller_runtime_active_workers{@}) / sum by (controller) (` +
					`controller_runtime_max_concurrent_reconciles{@})`, "{{controller}}",
			}},
		},
	}
}

func hubRequests() []panel {
	return []panel{
		{
			kind: timeSeries, unit: requests, title: "Requests to the API server", width: 6,
			says:    "Requests of the hub manager, by method.",
			do:      "At rest it renews its Lease. PATCH and PUT that go on are two programs that write one object.",
			queries: []query{{`sum by (method) (rate(rest_client_requests_total{@}[$__rate_interval]))`, "{{method}}"}},
		},
		{
			kind: timeSeries, unit: requests, title: "Requests that were refused", width: 6,
			says: "Answers of the API server with an error, by their code. 404 and 409 are part of normal work.",
			do:   "403 is a right that is missing, 429 an API server that has too much to do, 5xx one that is ill.",
			queries: []query{{
				`sum by (code) (rate(rest_client_requests_total{@,code!~"[123].."}[$__rate_interval]))`, "{{code}}",
			}},
		},
		{
			kind: timeSeries, unit: count, title: "Certificate requests approved", width: 6,
			colors: map[string]string{"cluster": blue, "addon": orange},
			says:   "Certificate requests that were approved in an interval of the picture, by whose they are.",
			do:     "Many of one cluster are an agent that loses the Secret with its credential.",
			queries: []query{{
				`sum by (kind) (increase(spokelet_csr_approved_total{@}[$__rate_interval]))`, "{{kind}}",
			}},
		},
		{
			kind: timeSeries, unit: count, title: "Certificate requests left alone", width: 6,
			says: "Certificate requests that a rule left alone in an interval of the picture, by the rule.",
			do:   "`kubectl spokelet check` names the request, and the page about registration explains the rule.",
			queries: []query{{
				`sum by (kind, rule) (increase(spokelet_csr_refused_total{@}[$__rate_interval]))`, "{{kind}}: {{rule}}",
			}},
		},
	}
}

func hubWebhook() []panel {
	return []panel{
		{
			kind: timeSeries, unit: requests, title: "Calls of the webhook", width: 6, runbook: alertWebhook,
			says: "Calls of the API server, by path and code. A read of an add-on in the other version needs one.",
			do:   "Any other code than 200: the log has the error.",
			queries: []query{{
				`sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{@}[$__rate_interval]))`,
				"{{code}} {{webhook}}",
			}},
		},
		{
			kind: timeSeries, unit: seconds, title: "Time of a call", width: 6, runbook: alertWebhook,
			says:    "How long 99 of 100 calls take.",
			do:      "A call that takes seconds delays each write of an add-on: look at what the program uses, below.",
			queries: []query{{quantile("0.99", "controller_runtime_webhook_latency_seconds", "@", "webhook"), "{{webhook}}"}},
		},
		{
			kind: timeSeries, unit: perSecond, title: "Templates rendered", width: 6, runbook: alertRender,
			colors:  byValue("rendered", "failed"),
			says:    "How often templates of add-ons were rendered, and how often that failed.",
			do:      "Condition ManifestApplied of the add-on has the error.",
			queries: []query{{`sum by (result) (rate(spokelet_template_renders_total{@}[$__rate_interval]))`, "{{result}}"}},
		},
		{
			kind: timeSeries, unit: count, title: "What conversions dropped and refused", width: 6,
			says: "Fields that conversions left out in an interval of the picture, because no annotation can carry them, " +
				"and reviews that were refused, because an object cannot be converted.",
			do: "The log names the object. Write such add-ons in v1beta1.",
			queries: []query{
				{`sum(increase(spokelet_conversion_dropped_total{@}[$__rate_interval]))`, "fields dropped"},
				{`sum(increase(spokelet_conversion_refused_total{@}[$__rate_interval]))`, "reviews refused"},
			},
		},
	}
}
