package command

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		"an unknown name is refused with those that are known": {
			text: "Turn=true", wantErr: `unknown feature gate "Turn", known are Always, Never, Turns, AllAlpha, AllBeta`,
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
