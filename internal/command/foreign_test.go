package command

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation"
)

func TestForeignFlagsAreAcceptedAndTold(t *testing.T) {
	var foreign Foreign
	flags := pflag.NewFlagSet("program", pflag.ContinueOnError)
	foreign.Accept(flags, "there is no file", "config", "listen")
	foreign.AcceptBool(flags, "it is always so", "profiling")
	require.NoError(t, flags.Parse([]string{"--config", "x", "--profiling", "--config=y"}))
	assert.Equal(t, []Note{
		{Flag: "--config", Reason: "there is no file"}, {Flag: "--profiling", Reason: "it is always so"},
	}, foreign.Notes(), "each once, and only those that are given")
	assert.NotContains(t, flags.FlagUsages(), "config")
}

func TestGates(t *testing.T) {
	for sentence, tc := range map[string]struct {
		text      string
		turned    bool
		wantNotes []Note
		wantErr   string
	}{
		"a gate that turns something turns it": {text: "Turns=true", turned: true},
		"spaces and empty parts do no harm":    {text: " Turns = true ,, ", turned: true},
		"what holds anyway needs no word":      {text: "Always=true,Never=false"},
		"what cannot be had is told": {
			text: "Always=false,Never=true", wantNotes: []Note{
				{Flag: "--feature-gates=Always", Reason: "here it is always on"},
				{Flag: "--feature-gates=Never", Reason: "here it is always off"},
			},
		},
		"the names of many gates are accepted": {
			text: "AllAlpha=true,AllBeta=false", wantNotes: []Note{
				{Flag: "--feature-gates=AllAlpha", Reason: "name the gates one by one"},
				{Flag: "--feature-gates=AllBeta", Reason: "name the gates one by one"},
			},
		},
		"an unknown name is told with those that are known, and the others count": {
			text: "Turn=true,Turns=true", turned: true, wantNotes: []Note{{
				Flag: "--feature-gates=Turn", Unknown: true,
				Reason: `unknown feature gate "Turn", known are Always, Never, Turns, AllAlpha, AllBeta`,
			}},
		},
		"a gate without a value is refused": {text: "Turns", wantErr: "name=true or name=false"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var foreign Foreign
			turned := false
			gates := &Gates{Notes: &foreign, Known: map[string]Gate{"Turns": {Value: &turned}, "Always": {On: true}, "Never": {}}}
			err := gates.Set(tc.text)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.turned, turned)
			assert.Equal(t, tc.wantNotes, foreign.Notes())
			assert.Equal(t, map[bool]string{true: "Turns=true", false: "Turns=false"}[tc.turned], gates.String())
		})
	}
}

func TestUnknownFlagsAreToldOrRefused(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args    []string
		unknown []string
		name    string
		v       int
	}{
		"none":                                {args: []string{"--name=x", "-v=3"}, name: "x", v: 3},
		"one with a value":                    {args: []string{"--new=1", "--name=x"}, unknown: []string{"--new"}, name: "x"},
		"one without a value":                 {args: []string{"--new", "--name=x"}, unknown: []string{"--new"}, name: "x"},
		"its value may be the next word":      {args: []string{"--new", "1", "--name", "x"}, unknown: []string{"--new"}, name: "x"},
		"a value that looks like a flag":      {args: []string{"--name", "--new"}, name: "--new"},
		"a letter":                            {args: []string{"-x=1", "-v", "2"}, unknown: []string{"-x"}, v: 2},
		"each is told once":                   {args: []string{"--new=1", "--new=2", "--other"}, unknown: []string{"--new", "--other"}},
		"what turns something needs no value": {args: []string{"--on", "--name=x"}, name: "x"},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				var foreign Foreign
				var name string
				var v int
				args := tc.args
				if strict {
					args = append([]string{"--strict-flags"}, args...)
				}
				err := Program{Name: "program", Foreign: &foreign}.Parse(args, io.Discard, func(flags *pflag.FlagSet) {
					flags.StringVar(&name, "name", "", "a name")
					flags.Bool("on", false, "a switch")
					AddVerbosity(flags, &v)
				})
				require.NoError(t, err)
				assert.Equal(t, tc.name, name)
				assert.Equal(t, tc.v, v)
				var unknown []string
				for _, note := range foreign.Notes() {
					assert.True(t, note.Unknown)
					unknown = append(unknown, note.Flag)
				}
				assert.Equal(t, tc.unknown, unknown)
				if err := foreign.Err(); strict && len(tc.unknown) > 0 {
					require.ErrorContains(t, err, tc.unknown[0]+": unknown flag")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
}

// Shows: flags/unknown
func TestUnknownSettingsAreCountedAndTold(t *testing.T) {
	var foreign Foreign
	foreign.Note("--old", "it has no effect")
	registry := prometheus.NewRegistry()
	require.NoError(t, foreign.Count(registry))
	t.Setenv("POD_NAME", "agent-0")
	assert.Nil(t, foreign.Event("spokelet-agent", "ns", time.Unix(7, 0)), "all is known")
	foreign.Unknown("--feature-gates=New", `unknown feature gate "New"`)
	require.NoError(t, foreign.Count(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	assert.Equal(t, "spokelet_foreign_settings", families[0].GetName())
	for _, m := range families[0].GetMetric() {
		assert.InDelta(t, 1, m.GetGauge().GetValue(), 0, "of %s", m.GetLabel()[0].GetValue())
	}
	assert.Len(t, families[0].GetMetric(), 2, "known and unknown ones")
	event := foreign.Event("spokelet-agent", "ns", time.Unix(7, 0))
	assert.Equal(t, "agent-0", event.Regarding.Name)
	assert.Empty(t, validation.NameIsDNSSubdomain(event.Name, false), "the API server takes no other names")
	assert.Empty(t, event.GenerateName)
	assert.Equal(t, "Warning UnknownSettings: settings have no effect, because this version does not know them: "+
		`--feature-gates=New: unknown feature gate "New"`, event.Type+" "+event.Reason+": "+event.Note)
	assert.Equal(t, []string{"--old has no effect: it has no effect", `--feature-gates=New has no effect: unknown feature gate "New"`},
		foreign.Lines())
	t.Setenv("POD_NAME", "")
	t.Setenv("HOSTNAME", "workstation")
	assert.Nil(t, foreign.Event("spokelet-agent", "ns", time.Unix(7, 0)), "there is no pod")
}

// The arguments of a program may be written by an operator from what others say.
func TestWhatIsToldOfAnUnknownSettingIsOneShortLineWithoutAValue(t *testing.T) {
	var foreign Foreign
	args := []string{"-ps3cr3t", "--new\nline=1", "--" + strings.Repeat("x", 5000)}
	require.NoError(t, Program{Name: "program", Foreign: &foreign}.Parse(args, io.Discard, func(*pflag.FlagSet) {}))
	require.Len(t, foreign.Notes(), 3)
	for _, line := range foreign.Lines() {
		assert.NotContains(t, line, "s3cr3t")
		assert.NotContains(t, line, "\n")
		assert.Less(t, len(line), 300)
	}
}
