package agent

import "github.com/spf13/pflag"

// addForeignFlags accepts the flags of OCM's agents that have nothing to set here: those that a Klusterlet passes, and
// those that its programs have from their libraries.
func (c *Config) addForeignFlags(f *pflag.FlagSet) {
	n := &c.foreign
	n.Accept(f, "a kubeconfig that changes is read again, the process goes on", "terminate-on-files")
	n.Accept(f, "status follows watches, there is no interval", "status-sync-interval")
	n.Accept(f, "every applied object is watched, whatever feedbackScrapeType says", "max-feedback-watch")
	n.Accept(f, "it is for other drivers than kube and csr", "hub-cluster-arn", "managed-cluster-arn",
		"managed-cluster-role-suffix", "grpc-bootstrap-config", "grpc-config", "cloudevents-client-id",
		"cloudevents-client-codecs")
	n.Accept(f, "it is not supported", "cluster-labels", "hosting-cluster-name")
	n.AcceptBool(f, "it is not supported", "report-hosting-cluster")
	n.Accept(f, "there is no configuration file, everything is a flag", "config")
	n.Accept(f, "the verbosity is the same everywhere; see -v", "vmodule")
	n.Accept(f, "every line is written at once", "log-flush-frequency")
	n.Accept(f, "a line is key=value pairs, and is written at once", "logging-format", "log-json-info-buffer-size",
		"log-text-info-buffer-size")
	n.AcceptBool(f, "every line goes to the standard error", "log-json-split-stream", "log-text-split-stream")
}

// noteUnused notes a flag that has no effect together with the duties of the process.
func (c *Config) noteUnused(flags *pflag.FlagSet) {
	if c.Duties.Registration && flags.Changed(flagWorkSourceConfig) {
		c.foreign.Note("--"+flagWorkSourceConfig, "works are read with the agent's own hub credential")
	}
}

// flagWorkSourceConfig is only used by an agent that only does works.
const flagWorkSourceConfig = "workload-source-config"
