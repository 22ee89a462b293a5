package dashboard

// process are the panels about what a program uses.
func process() []panel {
	return []panel{
		{
			kind: timeSeries, unit: processors, title: "Processors", width: 6,
			says:    "Processors that the program uses.",
			do:      "At rest it is close to zero. Compare with the page about sizing.",
			queries: []query{{`sum by (instance) (rate(process_cpu_seconds_total{@}[$__rate_interval]))`, "{{instance}}"}},
		},
		{
			kind: timeSeries, unit: memory, title: "Memory", width: 6, colors: map[string]string{"resident": blue, "heap": sky},
			says: "Memory of the program, and how much of it are its objects.",
			do:   "When it comes close to the limit of the container, raise the limit: see the page about sizing.",
			queries: []query{
				{`max(process_resident_memory_bytes{@})`, "resident"}, {`max(go_memstats_heap_inuse_bytes{@})`, "heap"},
			},
		},
		{
			kind: timeSeries, unit: count, title: "Goroutines", width: 6,
			says:    "Goroutines of the program.",
			do:      "A line that only grows is a bug: report it with a profile.",
			queries: []query{{`max by (instance) (go_goroutines{@})`, "{{instance}}"}},
		},
		{
			kind: timeSeries, unit: share, title: "Open files", width: 6, max: 1, steps: []Step{{Color: fine}, from(0.8, act)},
			says: "The share of the files that the program may open that are open.",
			do:   "When it comes close to 100 percent, connections fail: raise the limit of the container.",
			queries: []query{{
				`max by (instance) (process_open_fds{@} / process_max_fds{@})`, "{{instance}}",
			}},
		},
	}
}
