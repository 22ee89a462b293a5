package command

import "github.com/spf13/pflag"

// AddEndpoints binds the flags of the addresses of metrics and health over http; their defaults are the present values.
func AddEndpoints(f *pflag.FlagSet, metrics, health *string) {
	f.StringVar(metrics, "metrics-bind-address", *metrics, "address for /metrics over http; 0 is off")
	f.StringVar(health, "health-probe-bind-address", *health, "address for /healthz and /readyz over http; 0 is off")
}

// Requests are the limits of the requests to a cluster: how many a second, and how many more at once.
type Requests struct {
	QPS   *float32
	Burst *int
}

// AddRequests binds the flags that limit the requests to a cluster, with a prefix; their defaults are the present
// values.
func AddRequests(f *pflag.FlagSet, prefix, cluster string, limit Requests) {
	f.Float32Var(limit.QPS, prefix+"kube-api-qps", *limit.QPS,
		"requests per second to "+cluster+"; 0 leaves it to priority and fairness of the API server")
	f.IntVar(limit.Burst, prefix+"kube-api-burst", *limit.Burst, "requests that may exceed --"+prefix+"kube-api-qps")
}

// AddWatchedConfigs binds the flag that limits the watches of configurations of other kinds; its default is the present
// value.
func AddWatchedConfigs(f *pflag.FlagSet, kinds string, limit *int) {
	f.IntVar(limit, "watched-configs", *limit,
		"number of configurations of other kinds than "+kinds+" that are watched, one by one; an add-on may have half of "+
			"them")
}

// AddConfigPrecedence binds the flag that says which of several configurations of one kind counts; its default is the
// present value.
func AddConfigPrecedence(f *pflag.FlagSet, precedence *string) {
	f.StringVar(precedence, "config-precedence", *precedence,
		"which of several configurations of one kind counts for an add-on: Last, as OCM documents it, or First, as OCM 1.3 "+
			"and earlier choose")
}

// AddGiveBackMemory binds the flag that returns memory to the operating system; its default is the present value.
func AddGiveBackMemory(f *pflag.FlagSet, giveBack *bool) {
	f.BoolVar(giveBack, "give-back-memory", *giveBack,
		"return free heap to the operating system after the start and after each burst of work")
}

// AddVerbosity binds the flag of the log; its default is the present value.
func AddVerbosity(f *pflag.FlagSet, verbosity *int) {
	f.IntVarP(verbosity, "v", "v", *verbosity, "highest level of log lines that are written")
}
