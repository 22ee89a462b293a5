package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/internal/command"
)

// Defaults that a Klusterlet relies on.
const (
	// klusterletHealthPort is where its Deployments probe over HTTPS.
	klusterletHealthPort = 8443
	// klusterletHubDir is where its Deployments mount the directory of the hub credential.
	klusterletHubDir = "/spoke/hub-kubeconfig"
)

// call is a command: the duties of the process, and whether a Klusterlet started it.
type call struct {
	duties     Duties
	klusterlet bool
}

// calls are the names of the parts of the agent, as the name of the program or as its first argument. The Deployments
// of a Klusterlet begin with the path of a program of OCM's images, which ends in one of these names.
func calls() map[string]call {
	return map[string]call{
		"registration":          {duties: Duties{Registration: true}, klusterlet: true},
		"work":                  {duties: Duties{Works: true}, klusterlet: true},
		"registration-operator": {duties: both(), klusterlet: true},
		"klusterlet-agent":      {duties: both(), klusterlet: true},
	}
}

// agentWord may follow the word of a call, or stand alone for the whole agent.
const agentWord = "agent"

// parseCall takes the words that come before the flags. A word as the first argument counts more than the name of the
// program.
func parseCall(program string, args []string) (call, []string, error) {
	found, known := calls()[filepath.Base(program)]
	if !known {
		found = call{duties: both()}
	}
	if first, rest := word(args); first != "" {
		if named, ok := calls()[filepath.Base(first)]; ok {
			found, args = named, rest
		}
	}
	if next, rest := word(args); next == agentWord {
		args = rest
	}
	if surplus, _ := word(args); surplus != "" {
		return call{}, nil, fmt.Errorf("%q is not a command of the agent: it is started as \"agent\", "+
			"\"registration agent\" or \"work agent\"; the hub manager is the program spokelet-hub", surplus)
	}
	return found, args, nil
}

// word returns the first argument unless it is a flag, and the arguments behind it.
func word(args []string) (first string, rest []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", args
	}
	return args[0], args[1:]
}

// Main runs the agent with the command line of the process until ctx ends. It prints the error that ended it, and
// returns the exit status.
func Main(ctx context.Context) int {
	config, err := ParseFlags(os.Args[0], os.Args[1:], os.Stdout)
	if err == nil {
		err = Run(ctx, config)
	}
	return command.ExitStatus("spokelet", err, os.Stderr)
}

// ParseFlags turns a command line, the name of the program and its arguments, into a Config. The words registration and
// work, as the name of the program or as the first argument, run that part of the agent alone, with the defaults that a
// Klusterlet of OCM relies on. It returns pflag.ErrHelp when the arguments asked for help or for the version, which
// then are in out.
func ParseFlags(program string, args []string, out io.Writer) (Config, error) {
	as, args, err := parseCall(program, args)
	if err != nil {
		return Config{}, err
	}
	config := DefaultConfig()
	config.Duties = as.duties
	if as.klusterlet {
		config.HubKubeconfigDir = klusterletHubDir
	}
	var flags *pflag.FlagSet
	described := command.Program{
		Name:  "spokelet",
		Story: "spokelet joins a managed cluster to its hub and serves its add-ons and works.",
		Verbs: []string{agentWord, "registration agent", "work agent"}, Foreign: &config.foreign,
	}
	if err := described.Parse(args, out, func(f *pflag.FlagSet) {
		flags = f
		config.AddFlags(f)
	}); err != nil {
		return Config{}, err
	}
	if as.klusterlet && config.HealthPort == 0 {
		config.HealthPort = klusterletHealthPort
	}
	config.noteUnused(flags)
	config.noteDrivers()
	return config, config.foreign.Err()
}
