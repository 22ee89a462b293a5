// Package harness lets Prometheus look at our programs without the program prometheus. A Fleet runs hub manager and
// agents as processes on control planes of package sandbox, each with its metrics at a port of loopback. A Store is
// the database and the query engine of Prometheus, in a directory that can be read again later. A Monitor brings both
// together under a clock of its own.
//
//	f, err := harness.Start(ctx, harness.Options{Clusters: []string{"cluster1"}, Binaries: binaries})
//	store, err := harness.Open(dir)
//	m, err := harness.NewMonitor(store, f.Targets, "rules.yaml")
//	err = m.Run(ctx, 10*time.Minute)           // scrapes for ten minutes, which take a second
//	vector, err := store.Instant(ctx, `up`, m.Now())
//
// The clock begins at the time of the machine and steps forward by ScrapeEvery. At each step, what the programs serve
// at that moment is parsed by Prometheus' parser and stored under the instant of the clock, with the labels that a
// PodMonitor of ours gives, and then the rules are evaluated at that instant. So a rule that waits for ten minutes
// needs twenty real scrapes, and no ten minutes. Timestamps within metrics are those of the machine: expressions that
// compare them with time() see a clock that is as far ahead as the monitor stepped.
package harness
