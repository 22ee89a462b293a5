package agent

import (
	"time"

	"github.com/spf13/pflag"
)

// idle is a flag or a feature gate that was given, is accepted because OCM's agents know it, and has no effect here.
type idle struct {
	name, why string
}

// idleAnnotation marks a flag that has no effect; its value says why.
const idleAnnotation = "spokelet.io/no-effect"

// addIdleFlags accepts the flags of OCM's agents that have nothing to set here: those that a Klusterlet passes, and
// those that its programs have from their libraries. Those that were given are logged once when the agent starts.
func (c *Config) addIdleFlags(f *pflag.FlagSet) {
	var text string
	var texts []string
	var duration time.Duration
	var number int
	var truth bool
	mark := func(why string, names ...string) {
		for _, name := range names {
			flag := f.Lookup(name)
			flag.Hidden = true
			flag.Annotations = map[string][]string{idleAnnotation: {why}}
		}
	}
	f.StringArrayVar(&texts, "terminate-on-files", nil, "")
	mark("a kubeconfig that changes is read again, the process goes on", "terminate-on-files")
	f.DurationVar(&duration, "status-sync-interval", 0, "")
	mark("status follows watches, there is no interval", "status-sync-interval")
	f.IntVar(&number, "max-feedback-watch", 0, "")
	mark("every applied object is watched, whatever feedbackScrapeType says", "max-feedback-watch")

	for _, name := range []string{
		"hub-cluster-arn", "managed-cluster-arn", "managed-cluster-role-suffix", "grpc-bootstrap-config", "grpc-config",
		"cloudevents-client-id",
	} {
		f.StringVar(&text, name, "", "")
		mark("it is for other drivers than kube and csr", name)
	}
	f.StringSliceVar(&texts, "cloudevents-client-codecs", nil, "")
	mark("it is for other drivers than kube and csr", "cloudevents-client-codecs")

	f.StringToStringVar(&map[string]string{}, "cluster-labels", nil, "")
	f.BoolVar(&truth, "report-hosting-cluster", false, "")
	f.StringVar(&text, "hosting-cluster-name", "", "")
	mark("it is not supported", "cluster-labels", "report-hosting-cluster", "hosting-cluster-name")

	f.StringVar(&text, "config", "", "")
	mark("there is no configuration file, everything is a flag", "config")
	f.StringVar(&text, "vmodule", "", "")
	mark("the verbosity is the same everywhere; see -v", "vmodule")
	f.DurationVar(&duration, "log-flush-frequency", 0, "")
	mark("every line is written at once", "log-flush-frequency")
	for _, name := range []string{"logging-format", "log-json-info-buffer-size", "log-text-info-buffer-size"} {
		f.StringVar(&text, name, "", "")
		mark("a line is key=value pairs, and is written at once", name)
	}
	for _, name := range []string{"log-json-split-stream", "log-text-split-stream"} {
		f.BoolVar(&truth, name, false, "")
		mark("every line goes to the standard error", name)
	}
}

// noteIdle remembers the flags that were given and have no effect.
func (c *Config) noteIdle(flags *pflag.FlagSet) {
	flags.Visit(func(flag *pflag.Flag) {
		if why := flag.Annotations[idleAnnotation]; len(why) > 0 {
			c.idle = append(c.idle, idle{name: "--" + flag.Name, why: why[0]})
		}
	})
}
