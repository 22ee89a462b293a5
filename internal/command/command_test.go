package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		args     []string
		wantName string
		wantHelp bool
		wantErr  string
		wantOut  string
	}{
		"nothing leaves the defaults":         {wantName: "default"},
		"a flag is taken":                     {args: []string{"--name=x"}, wantName: "x"},
		"another word is refused":             {args: []string{"agnet"}, wantErr: "agnet"},
		"a word behind the flags is refused":  {args: []string{"--name=x", "y"}, wantErr: "y"},
		"an unknown flag is refused by name":  {args: []string{"--other=x"}, wantErr: "other"},
		"help tells the story and the flags":  {args: []string{"--help"}, wantHelp: true, wantOut: "--name"},
		"help tells the words before them":    {args: []string{"--help"}, wantHelp: true, wantOut: "program [agent]"},
		"the version is printed for the name": {args: []string{"--version"}, wantHelp: true, wantOut: "program "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got := "default"
			err := Program{Name: "program", Story: "It is tested.", Verbs: []string{"agent"}}.Parse(tc.args, &out,
				func(flags *pflag.FlagSet) { flags.StringVar(&got, "name", got, "a name") })
			switch {
			case tc.wantHelp:
				require.ErrorIs(t, err, pflag.ErrHelp)
			case tc.wantErr != "":
				require.ErrorContains(t, err, tc.wantErr)
			default:
				require.NoError(t, err)
				assert.Equal(t, tc.wantName, got)
			}
			assert.Contains(t, out.String(), tc.wantOut)
		})
	}
}

func TestNamespaceIsThatOfThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "mine")
	assert.Equal(t, "mine", Namespace("fallback"))
	t.Setenv("POD_NAMESPACE", "")
	assert.Equal(t, "fallback", Namespace("fallback"))
}

func TestALoggerThatIsThereIsKept(t *testing.T) {
	ctx := logr.NewContext(t.Context(), logr.Discard())
	assert.Equal(t, ctx, WithLogger(ctx, nil, 0))
}

func TestTheExitStatusOfAProgram(t *testing.T) {
	for sentence, tc := range map[string]struct {
		err    error
		status int
		said   string
	}{
		"it ended well":              {nil, 0, ""},
		"it was asked for help":      {fmt.Errorf("parsing: %w", pflag.ErrHelp), 0, ""},
		"it ended because of errors": {assert.AnError, 1, "program: " + assert.AnError.Error() + "\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var errs bytes.Buffer
			assert.Equal(t, tc.status, ExitStatus("program", tc.err, &errs))
			assert.Equal(t, tc.said, errs.String())
		})
	}
}
