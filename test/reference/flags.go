package reference

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/hub"
)

// FlagsPage is the page with the tables of flags, below the module root.
const FlagsPage = "docs/reference/flags.md"

// Flag is one flag of a program.
type Flag struct {
	// Name is the name without dashes, Meaning one sentence with the default, Idle why the flag has no effect.
	Name, Meaning, Idle string
}

var (
	// usage is a line of the help of a program: the name, the type of the value, and the meaning.
	usage = regexp.MustCompile(`(?m)^ +(?:-\w, )? *--([a-z0-9-]+)((?: \S+)?)   +(.*)$`)
	// local is a default that depends on where the help is printed.
	local = regexp.MustCompile(` \(default "[^"]*"\)$`)
)

// AgentFlags returns the flags of spokelet: those in its help, and those of OCM's agents that have no effect.
func AgentFlags() ([]Flag, error) {
	var help bytes.Buffer
	if _, err := agent.ParseFlags("spokelet", []string{"--help"}, &help); !errors.Is(err, pflag.ErrHelp) {
		return nil, fmt.Errorf("printing the help of spokelet: %w", err)
	}
	config, set := agent.DefaultConfig(), pflag.NewFlagSet("spokelet", pflag.ContinueOnError)
	config.AddFlags(set)
	return append(parse(help.String()), hidden(set)...), nil
}

// HubFlags returns the flags of spokelet-hub in its help.
func HubFlags() ([]Flag, error) {
	var help bytes.Buffer
	if _, err := hub.ParseFlags([]string{"--help"}, &help); !errors.Is(err, pflag.ErrHelp) {
		return nil, fmt.Errorf("printing the help of spokelet-hub: %w", err)
	}
	config, set := hub.DefaultConfig(), pflag.NewFlagSet("spokelet-hub", pflag.ContinueOnError)
	config.AddFlags(set)
	return append(parse(help.String()), hidden(set)...), nil
}

// parse reads the flags from the help of a program.
func parse(help string) []Flag {
	var all []Flag
	for _, match := range usage.FindAllStringSubmatch(help, -1) {
		meaning := match[3]
		if match[1] == "namespace" {
			meaning = local.ReplaceAllString(meaning, "")
		}
		all = append(all, Flag{Name: match[1], Meaning: meaning})
	}
	return all
}

// hidden returns the flags that the help does not show.
func hidden(set *pflag.FlagSet) []Flag {
	var all []Flag
	set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			return
		}
		idle := "accepted without an effect"
		for _, values := range flag.Annotations {
			idle = strings.Join(values, "; ")
		}
		all = append(all, Flag{Name: flag.Name, Idle: idle})
	})
	return all
}

// Tables returns the tables of flags of a program in Markdown.
func Tables(flags []Flag) string {
	var used, idle strings.Builder
	for _, flag := range flags {
		if flag.Idle != "" {
			fmt.Fprintf(&idle, "| `--%s` | %s |\n", flag.Name, cell(flag.Idle))
			continue
		}
		fmt.Fprintf(&used, "| `--%s` | %s |\n", flag.Name, cell(flag.Meaning))
	}
	text := "| flag | meaning |\n|---|---|\n" + used.String()
	if idle.Len() > 0 {
		text += "\nAccepted for Open Cluster Management, and without an effect:\n\n| flag | why |\n|---|---|\n" + idle.String()
	}
	return text
}

// cell keeps a text within a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

// RewriteFlags returns the page of flags with its tables as they shall be.
func RewriteFlags(page string) (string, error) {
	for program, list := range map[string]func() ([]Flag, error){"spokelet": AgentFlags, "spokelet-hub": HubFlags} {
		flags, err := list()
		if err != nil {
			return "", err
		}
		begin, end := "<!-- begin "+program+" -->\n", "<!-- end "+program+" -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("%s has no place for the flags of %s", FlagsPage, program)
		}
		page = before + begin + "\n" + Tables(flags) + "\n" + end + after
	}
	return page, nil
}

// UpdateFlags rewrites the page of flags below root.
func UpdateFlags(root string) error {
	file := filepath.Join(root, filepath.FromSlash(FlagsPage))
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the page of flags: %w", err)
	}
	text, err := RewriteFlags(string(page))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the page of flags: %w", err)
	}
	return nil
}
